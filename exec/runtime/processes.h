// The processes that run one Program together: this one alone, or one per rank.
//
// The coordinator is the lowest rank that is not known to be gone, normally rank 0. It prints and
// writes files while the others wait. A run ends with a shutdown:
//
//   coordinator: writes reports, sends heartbeats  ->  sends a shutdown message  ->  exits
//   the others:  wait while heartbeats arrive      ->  receive it                ->  exit
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "exec/runtime/blob.h"
#include "exec/runtime/limits.h"
#include "exec/runtime/transport.h"

namespace bubblescope::exec {

class Processes {
 public:
  /// This process alone.
  Processes() = default;
  /// Processes that are connected by a transport, which is not copied. `close` is called after the
  /// shutdown.
  Processes(Transport& transport, const Limits& limits, std::function<void()> close = {});
  /// Calls shutdown() unless it was called, and ignores its errors.
  ~Processes();
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  std::int32_t count() const { return transport_ == nullptr ? 1 : transport_->self().count; }

  /// The rank that runs in this process; empty if all of them do.
  std::optional<std::int32_t> here() const {
    return transport_ == nullptr ? std::nullopt : std::optional(transport_->self().rank);
  }
  bool runs(std::int32_t rank) const { return here().value_or(rank) == rank; }

  /// Whether this process is the coordinator, which prints and writes files.
  bool is_coordinator() const {
    return transport_ == nullptr || transport_->coordinator() == transport_->self().rank;
  }

  /// Collects one blob from every process, by rank. All processes must call it, in the same order.
  /// Throws Error if one of them does not answer.
  std::vector<Blob> gather(Blob own) const;

  /// Sends a heartbeat to all others. Any thread may call it except during gather().
  void send_heartbeat() const;

  /// Ends the run: the coordinator notifies the others that it has finished, and they wait for
  /// that. Throws Error if the coordinator was lost: "rank 0 is gone: ...".
  void shutdown();

 private:
  Transport* transport_ = nullptr;
  Limits limits_;
  std::function<void()> close_;
  bool is_shut_down_ = false;
};

/// Performs the shutdown over a transport. Returns what happened to the coordinator if its shutdown
/// message did not come, else an empty text.
std::string await_shutdown(Transport& transport, const Limits& limits);

inline const Processes& this_process_alone() {
  static const Processes alone;
  return alone;
}

}  // namespace bubblescope::exec
