// The state that the lanes of a process share while they run a step: dependencies, clock and times.
// A lane that waits does not use its core.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "exec/runtime/backend.h"
#include "sim/ir/program.h"

namespace bubblescope::exec {

/// Callbacks to the other processes, for a process that runs one rank.
struct RemoteHooks {
  std::int32_t here = 0;  ///< the rank that runs in this process
  /// Reports that an instruction of this rank, for which others wait, has ended; they count from
  /// `end`.
  std::function<void(InstructionId, Nanos end)> notify;
  /// Copies the payload of a copy to or from the memory of another process, if it goes to one.
  /// Returns when the copy is complete or the step was stopped.
  std::function<void(InstructionId copy)> move;
  /// Receives messages by calling StepRun::hear() and stop(); returns false if there were none.
  std::function<bool()> poll;
};

/// Runs a step by the Program's rule: an instruction starts when it is first in its lane and all
/// its dependencies have ended. Without a lane, the thread that ends the last dependency runs it.
class StepRun {
 public:
  /// `request` and `program` are not copied. Without `remote`, every rank runs in this process.
  StepRun(const BackendRequest& request, const Program& program,
          std::optional<RemoteHooks> remote = std::nullopt);

  /// Sets the events back: nothing has started. Only while no lane runs.
  void reset();
  /// Does that and starts the clock, at a time of the monotonic one.
  void start(Nanos begin);

  /// Records the end of an instruction of another process. Rethrows exceptions of its dependents.
  void record_remote_end(InstructionId id, Nanos end);

  /// Receives messages of other processes, if there are any.
  void poll();
  Nanos now() const { return clock_.now(); }
  bool has_remote() const { return remote_.has_value(); }

  /// Waits for the dependencies, does the work and releases the dependents; an exception of the
  /// work stops the step. Returns false if the step was stopped before the instruction ended.
  bool run(InstructionId id);

  /// Stops the step with the current exception, which is this rank's failure if it is the first.
  void fail(std::int32_t rank);

  /// Makes every lane return from run().
  void stop();
  bool stopped() const { return clock_.stopped(); }

  /// How many instructions have ended here, and elsewhere as far as it was heard of.
  std::uint64_t progress_here() const { return progress_.load(std::memory_order_relaxed); }
  /// The same, and how often others have shown that they go on.
  std::uint64_t progress() const { return progress_here() + elsewhere_.load(); }
  void note_progress_elsewhere() { elsewhere_.fetch_add(1, std::memory_order_relaxed); }

  /// When an instruction ran; empty if it never started. Call only while no lane runs.
  std::optional<Span> span(InstructionId id) const;

  /// Why an instruction in a lane has not ended. Call only while no lane runs.
  BlockedAt explain(InstructionId id) const;

  /// The exception of this rank's work, if it was the first. Call only while no lane runs.
  std::exception_ptr failure(std::int32_t rank) const;

 private:
  /// Has a cache line of its own, so that waiting lanes do not disturb each other.
  struct alignas(64) WakeSignal {
    std::atomic<std::uint32_t> wakes = 0;
  };

  bool is_here(InstructionId id) const {
    return !remote_ || program_.instructions[id].rank == remote_->here;
  }
  void find_dependents();
  bool await(InstructionId id);
  bool await_polling(InstructionId id);
  Nanos find_ready(InstructionId id) const;
  void perform(InstructionId id);
  void inject_fault(const Injection& injection, InstructionId id);
  void hang_at(const Op& op);
  void release_dependents(InstructionId id);
  void wake(std::uint32_t lane);

  const BackendRequest& request_;
  const Program& program_;
  std::optional<RemoteHooks> remote_;
  InjectionTable injections_;
  StepClock clock_;
  std::vector<std::uint32_t> dependent_begin_;  ///< reversed dependencies between lanes
  std::vector<InstructionId> dependents_;
  std::vector<std::int32_t> needed_;  ///< [instruction]: its dependencies in other lanes
  std::unique_ptr<std::atomic<std::int32_t>[]> missing_;  ///< of these, not ended
  std::vector<Nanos> start_;                              ///< by the clock
  std::vector<Nanos> end_;
  std::vector<Nanos> effective_end_;  ///< as the work returned it; dependents count from it
  std::vector<std::uint8_t> state_;
  std::vector<Nanos> lane_end_;
  std::unique_ptr<WakeSignal[]> wake_signals_;  ///< per lane
  std::atomic<std::uint64_t> progress_ = 0;
  std::atomic<std::uint64_t> elsewhere_ = 0;
  std::mutex failure_mutex_;
  std::exception_ptr failure_;
  std::int32_t failed_rank_ = 0;
};

}  // namespace bubblescope::exec
