// What the lanes of one process share while they run a step: the events between instructions, the
// clock, the times. A lane waits for an event without using its core.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "exec/backend.h"
#include "sim/ir/program.h"

namespace bubblescope {

/// The event rule is that of the Program: an instruction starts when it heads its lane and all its
/// dependencies have ended. One without a lane is run by whichever thread ends the last of them.
class StepRun {
 public:
  /// `request` and `program` are not copied.
  StepRun(const BackendRequest& request, const Program& program);

  /// Sets the events back and starts the clock. Only while no lane runs.
  void start();

  /// Waits for the instruction's dependencies, does its work and lets its dependents go; what the
  /// work throws stops the step. False if the step was stopped before it ended.
  bool run(InstructionId id);

  /// Makes every lane return from run().
  void stop();
  bool stopped() const { return clock_.stopped(); }

  /// How many instructions of a lane have ended, over all lanes: it grows while the step goes on.
  std::uint64_t progress() const { return progress_.load(std::memory_order_relaxed); }

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

  bool await(InstructionId id);
  Nanos find_ready(InstructionId id) const;
  void perform(InstructionId id);
  void suffer(const Injection& injection, InstructionId id);
  void release_dependents(InstructionId id);
  void fail(std::int32_t rank);
  void ring(std::uint32_t lane);

  const BackendRequest& request_;
  const Program& program_;
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
  std::mutex failure_mutex_;
  std::exception_ptr failure_;
  std::int32_t failed_rank_ = 0;
};

}  // namespace bubblescope
