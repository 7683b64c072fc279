// The processes that run one Program together: this one alone, or one per rank.
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
  /// Connected by a transport, which is not copied; `close` is called at the very end.
  Processes(Transport& transport, const Limits& limits, std::function<void()> close = {});
  /// Shuts down where nobody has, and says nothing about what became of the others.
  ~Processes();
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  std::int32_t count() const { return transport_ == nullptr ? 1 : transport_->self().count; }

  /// The only rank that runs here; empty: all of them do.
  std::optional<std::int32_t> here() const {
    return transport_ == nullptr ? std::nullopt : std::optional(transport_->self().rank);
  }
  bool runs(std::int32_t rank) const { return here().value_or(rank) == rank; }

  /// Whether this process is the coordinator, which prints and writes files.
  bool is_coordinator() const {
    return transport_ == nullptr || transport_->coordinator() == transport_->self().rank;
  }

  /// Everyone's bytes, by rank; alone, one's own. Every process calls it, in the same order. Throws
  /// Error where one of them does not answer.
  std::vector<Blob> gather(Blob own) const;

  /// Tells the others to wait on. Any thread may call it while nothing is gathered.
  void send_heartbeat() const;

  /// The end, for all: the coordinator tells the others that it is done, and they wait for that, as
  /// long as it lives. It may still have files to write, or a serial reference to train. Throws
  /// Error where the coordinator was lost: "rank 0 is gone: ...".
  void shutdown();

 private:
  Transport* transport_ = nullptr;
  Limits limits_;
  std::function<void()> close_;
  bool is_shut_down_ = false;
};

/// The shutdown over a transport. Returns what became of the coordinator where it did not tell that
/// it was done; else nothing.
std::string await_shutdown(Transport& transport, const Limits& limits);

inline const Processes& this_process_alone() {
  static const Processes alone;
  return alone;
}

}  // namespace bubblescope::exec
