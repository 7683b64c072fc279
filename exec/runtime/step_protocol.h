// The step protocol: how the processes of a run, one per rank, begin a step, notice failures and
// end it together. It needs only a Transport, so it is the same over MPI and sockets.
//
//   open_step()           starts the next step; messages of earlier steps are ignored from now on
//   agree_on_begin()      syncs the clocks and agrees on the moment at which the step begins
//   exchange_heartbeats() while the step runs: sends and receives heartbeats, receives aborts
//   gather_parts()        notifies the others of an abort, if any, and collects all ranks' results
//
// A process counts as dead if its connection ends, or if it does not answer within the timeout.
// After an abort, answers are awaited for 2 s, or for 0.4 s after Ctrl-C.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "exec/runtime/backend.h"
#include "exec/runtime/clock_sync.h"
#include "exec/runtime/limits.h"
#include "exec/runtime/rank_part.h"
#include "exec/runtime/transport.h"

namespace bubblescope::exec {

/// Sends a heartbeat that belongs to no step.
void send_heartbeat(Transport& transport);

/// Only exchange_heartbeats() may be called on several threads.
class StepProtocol {
 public:
  /// `transport` is not copied.
  StepProtocol(Transport& transport, const Limits& limits);

  /// Starts the next step. All processes must start their steps in the same order.
  void open_step();
  std::uint32_t step() const { return step_; }

  /// Agrees with all processes on when the step begins. Empty if one of them is gone, does not
  /// answer or has aborted; then abort_reason() says why.
  const std::optional<StepBegin>& agree_on_begin();
  /// The result of the last agree_on_begin(); empty if the step has not begun.
  const std::optional<StepBegin>& begin() const { return begin_; }

  /// Receives control messages while a step runs. If `progress` has changed, it also sends a
  /// heartbeat, eight per timeout at most. Throws Error that names a process that is gone. Does
  /// nothing while another thread is in it.
  PeerUpdate exchange_heartbeats(std::uint64_t progress);

  /// Exchanges heartbeats while this thread waits for something else. Throws Error once waiting is
  /// useless: after an abort or a failure of another process, Ctrl-C, or the timeout without a
  /// message.
  void watch();

  /// Why the step was aborted, unless it failed in this process.
  AbortReason abort_reason() const { return abort_reason_; }

  /// Collects what every rank did. A rank that does not answer, or that has died since, gets a
  /// failure that says so. `meanwhile` is called again and again while this process waits.
  std::vector<RankPart> gather_parts(const RankPart& own,
                                     const std::function<void()>& meanwhile = {});

  /// Collects one blob from every process, by rank. Throws Error that names a rank that does not
  /// answer.
  std::vector<Blob> gather(Blob own);

  /// Notifies the other processes that this one cannot continue, so that they do not wait for it.
  void notify_failure(const std::string& what);

 private:
  PeerUpdate handle_control();
  bool should_abort(Nanos min_timeout = 0);
  Nanos grace(Nanos of_first) const;

  Transport& transport_;
  Limits limits_;
  std::mutex exchanging_;
  std::uint32_t step_ = 0;
  std::optional<StepBegin> begin_;
  AbortReason abort_reason_ = AbortReason::kNone;
  Nanos last_update_at_;           ///< when the last control message came
  std::optional<Nanos> deadline_;  ///< when to stop waiting for answers; set by an abort
  std::uint64_t reported_ = 0;     ///< the progress at the last heartbeat
  Nanos reported_at_ = 0;
};

}  // namespace bubblescope::exec
