// How the processes of a run go through a step together: when it begins, heartbeats while it runs,
// the abort that one of them tells the others, and what every rank did in it.
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

/// Tells the other processes to wait on, while this one does what takes long.
void send_heartbeat(Transport& transport);

/// For one thread, but for poll().
class StepProtocol {
 public:
  /// `transport` is not copied.
  StepProtocol(Transport& transport, const Limits& limits);

  /// All processes begin their steps in the same order.
  void open_step();
  std::uint32_t step() const { return step_; }

  /// When the step begins, the same moment for all. Empty: one of them is gone, does not answer or
  /// has aborted, and stopped() says why.
  const std::optional<StepBegin>& agree_on_begin();
  /// The same again; empty where the step has not begun.
  const std::optional<StepBegin>& begin() const { return begin_; }

  /// What has come since, while a step runs. When `progress` has changed, the others get a
  /// heartbeat now and then. Throws Error that names a process that is gone. Any thread may call;
  /// while one does, the others hear nothing.
  StepNews poll(std::uint64_t progress);

  /// The same while this thread waits for something else: throws Error when it need not wait any
  /// more, because of an abort or a failure elsewhere, Ctrl-C, or --timeout.
  void watch();

  /// Why the step was stopped, where it was not by a failure here.
  AbortReason stopped() const { return stopped_; }

  /// What every rank did; a rank that does not answer is said to, and so is one that has died
  /// since. An abort here is told to the others first. `meanwhile` is called while others are
  /// waited for.
  std::vector<RankPart> gather_parts(const RankPart& own,
                                     const std::function<void()>& meanwhile = {});

  /// Everyone's bytes, by rank. Throws Error that names a rank that does not answer.
  std::vector<Blob> gather(Blob own);

  /// This process cannot go on, and the others need not wait for it.
  void notify_failure(const std::string& what);

 private:
  StepNews handle_control();
  bool should_abort(Nanos min_timeout = 0);
  Nanos grace(Nanos of_first) const;
  bool is_interrupted() const {
    return limits_.interrupted != nullptr && limits_.interrupted->load();
  }

  Transport& transport_;
  Limits limits_;
  std::mutex polling_;
  std::uint32_t step_ = 0;
  std::optional<StepBegin> begin_;
  AbortReason stopped_ = AbortReason::kNone;
  Nanos last_news_at_;             ///< when something was last heard
  std::optional<Nanos> deadline_;  ///< when answers are waited for no more, once there is an abort
  std::uint64_t reported_ = 0;     ///< the progress at the last heartbeat
  Nanos reported_at_ = 0;
};

}  // namespace bubblescope::exec
