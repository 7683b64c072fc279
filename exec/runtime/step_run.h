// What the lanes of one process share while they run a step: the events between instructions, the
// clock, the times. A lane waits for an event without using its core.
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

namespace bubblescope {

/// What a process that runs one rank tells the others and hears of them.
struct Outside {
  std::int32_t here = 0;  ///< the rank that runs in this process
  /// An instruction of this rank has ended, for which others wait; `end` is what they count from.
  std::function<void(InstructionId, Nanos end)> tell;
  /// Moves what a copy carries to the memory of another process, or from it, if it leaves this one;
  /// returns when it has arrived, or the step was stopped.
  std::function<void(InstructionId copy)> move;
  /// Takes in what has come from others: calls StepRun::hear() and stop(). False: nothing has.
  std::function<bool()> listen;
};

/// The event rule is that of the Program: an instruction starts when it heads its lane and all its
/// dependencies have ended. One without a lane is run by whichever thread ends the last of them.
class StepRun {
 public:
  /// `request` and `program` are not copied. Without `outside`, every rank runs in this process.
  StepRun(const BackendRequest& request, const Program& program,
          std::optional<Outside> outside = std::nullopt);

  /// Sets the events back: nothing has started. Only while no lane runs.
  void reset();
  /// Does that and starts the clock, at a time of the monotonic one.
  void start(Nanos begin);

  /// An instruction of another process has ended. What its dependents throw is passed on.
  void hear(InstructionId id, Nanos end);

  /// Takes in what has come from other processes, if there are any.
  void listen();
  Nanos now() const { return clock_.now(); }
  bool listens() const { return outside_.has_value(); }

  /// Waits for the instruction's dependencies, does its work and lets its dependents go; what the
  /// work throws stops the step. False if the step was stopped before it ended.
  bool run(InstructionId id);

  /// The exception that is being caught stops the step, as the failure of this rank if it is the
  /// first.
  void fail(std::int32_t rank);

  /// Makes every lane return from run().
  void stop();
  bool stopped() const { return clock_.stopped(); }

  /// How many instructions have ended here, and elsewhere as far as it was heard of.
  std::uint64_t progress_here() const { return progress_.load(std::memory_order_relaxed); }
  /// The same, and how often others have shown that they go on.
  std::uint64_t progress() const { return progress_here() + elsewhere_.load(); }
  void note_progress_elsewhere() { elsewhere_.fetch_add(1, std::memory_order_relaxed); }

  /// When an instruction ran; empty if it never started. Only while no lane runs.
  std::optional<Span> span(InstructionId id) const;

  /// Why an instruction in a lane has not ended. Only while no lane runs.
  Stand explain(InstructionId id) const;

  /// What the work of this rank threw, if it was the first to throw. Only while no lane runs.
  std::exception_ptr failure(std::int32_t rank) const;

 private:
  /// On a line of its own, so that a lane's waiting disturbs no other.
  struct alignas(64) Bell {
    std::atomic<std::uint32_t> rung = 0;
  };

  bool is_here(InstructionId id) const {
    return !outside_ || program_.instructions[id].rank == outside_->here;
  }
  void find_dependents();
  bool await(InstructionId id);
  bool await_listening(InstructionId id);
  Nanos find_ready(InstructionId id) const;
  void perform(InstructionId id);
  void suffer(const Injection& injection, InstructionId id);
  void hang_at(const Op& op);
  void release_dependents(InstructionId id);
  void ring(std::uint32_t lane);

  const BackendRequest& request_;
  const Program& program_;
  std::optional<Outside> outside_;
  InjectionTable injections_;
  StepClock clock_;
  std::vector<std::uint32_t> dependent_begin_;  ///< the dependencies of other lanes, turned round
  std::vector<InstructionId> dependents_;
  std::vector<std::int32_t> needed_;                      ///< per instruction, how many of those
  std::unique_ptr<std::atomic<std::int32_t>[]> missing_;  ///< how many of them have not ended
  std::vector<Nanos> start_;                              ///< as the clock said
  std::vector<Nanos> end_;
  std::vector<Nanos> effective_end_;  ///< as the work said: what dependents count from
  std::vector<std::uint8_t> state_;
  std::vector<Nanos> lane_end_;
  std::unique_ptr<Bell[]> bells_;  ///< per lane
  std::atomic<std::uint64_t> progress_ = 0;
  std::atomic<std::uint64_t> elsewhere_ = 0;
  std::mutex failure_mutex_;
  std::exception_ptr failure_;
  std::int32_t failed_rank_ = 0;
};

}  // namespace bubblescope
