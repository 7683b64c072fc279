// The state that the lanes of a process share during a step: dependencies, clock and times. A lane
// that waits does not use its core.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "exec/runtime/backend.h"
#include "exec/runtime/first_failure.h"
#include "exec/runtime/pending_dependencies.h"
#include "exec/runtime/ready_lanes.h"
#include "exec/runtime/remote_hooks.h"
#include "exec/runtime/wake_signal.h"
#include "sim/ir/program.h"

namespace bubblescope::exec {

/// Runs a step by the Program's rule: an instruction starts when it is first in its lane, or under
/// a policy when its rank chooses it, and all its dependencies have ended. An instruction without a
/// lane runs on the thread that ended its last dependency.
class StepRun {
 public:
  /// `request` and `program` are not copied. Without `remote`, every rank runs in this process.
  StepRun(const BackendRequest& request, const Program& program,
          std::optional<RemoteHooks> remote = std::nullopt);

  /// Forgets the previous step. Call only while no lane runs.
  void reset();
  /// Calls reset() and starts the clock at a time of the monotonic clock.
  void start(Nanos begin);

  /// Records the end of an instruction of another process. Rethrows exceptions of its dependents.
  void record_remote_end(InstructionId id, Nanos end);

  /// Calls the `poll` hook, if there is one.
  void poll();
  Nanos now() const { return clock_.now(); }
  bool has_remote() const { return remote_.has_value(); }

  /// Whether the order of the lane is a hint, so that its thread calls choose() before it runs
  /// anything but the second op of a pair.
  bool chooses(std::uint32_t lane) const { return ready_.chooses(lane); }
  /// Waits until the lane may run something, and takes it from its queue. Returns nullopt if the
  /// step was aborted.
  std::optional<ReadyUnit> choose(std::uint32_t lane);

  /// Waits for the dependencies, does the work and releases the dependents; an exception of the
  /// work aborts the step. Returns false if the step was aborted before the instruction ended.
  bool run(InstructionId id);

  /// Aborts the step with the current exception. The first one counts as this rank's failure.
  void fail(std::int32_t rank);

  /// Makes every lane return from run().
  void abort();
  bool aborted() const { return clock_.stopped(); }

  /// Returns the number of instructions that have ended, with those of other ranks that were
  /// reported.
  std::uint64_t progress_here() const { return progress_.load(std::memory_order_relaxed); }
  /// Adds the number of heartbeats and other messages that showed progress elsewhere.
  std::uint64_t progress() const { return progress_here() + elsewhere_.load(); }
  void note_progress_elsewhere() { elsewhere_.fetch_add(1, std::memory_order_relaxed); }

  /// The span of an instruction; empty if it never started. Call only while no lane runs.
  std::optional<Span> span(InstructionId id) const;

  /// Explains why an instruction in a lane has not ended. Call only while no lane runs.
  BlockedAt explain(InstructionId id) const;

  /// The exception of this rank's work, if it was the first. Call only while no lane runs.
  std::exception_ptr failure(std::int32_t rank) const;

 private:
  enum class State : std::uint8_t { kNotStarted, kStarted, kEnded };
  struct InstructionTimes {
    Nanos start = 0;  ///< by the clock, like `end`
    Nanos end = 0;
    Nanos effective_end = 0;  ///< the end that the work returned; the start of dependents
    State state = State::kNotStarted;
    bool has_ended() const { return state == State::kEnded; }
  };
  struct LaneState {
    Nanos end = 0;       ///< the effective end of its last instruction
    Nanos recorded = 0;  ///< that instruction's end by the clock
    WakeSignal signal;
  };

  bool is_here(InstructionId id) const {
    return !remote_ || program_.instructions[id].rank == remote_->here;
  }
  bool precedes_anyway(InstructionId dependency, InstructionId id) const;
  bool await(InstructionId id);
  bool await_polling(InstructionId id);
  Nanos find_inputs_time(InstructionId id) const;
  Nanos find_ready(InstructionId id) const;
  Nanos find_start(const WorkItem& item) const;
  void perform(InstructionId id);
  void inject_fault(const Injection& injection, InstructionId id);
  void hang_at(const Op& op);
  void release_dependents(InstructionId id);

  const BackendRequest& request_;
  const Program& program_;
  std::optional<RemoteHooks> remote_;
  InjectionTable injections_;
  ReadyLanes ready_;
  StepClock clock_;
  PendingDependencies pending_;
  std::vector<InstructionTimes> times_;  ///< [instruction]
  std::unique_ptr<LaneState[]> lanes_;   ///< [lane]
  std::atomic<std::uint64_t> progress_ = 0;
  std::atomic<std::uint64_t> elsewhere_ = 0;
  FirstFailure failure_;
};

}  // namespace bubblescope::exec
