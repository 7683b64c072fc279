// Injected faults of a step on GPUs: a delay after an op, and ranks that die or hang at one.
#pragma once

#include "exec/gpu/host/gpu_machine.h"
#include "exec/runtime/backend.h"

namespace bubblescope::exec {

/// The time that running kernels have to finish after an abort, if the step's own timeout is
/// longer.
inline constexpr Nanos kDrainTimeout = 20'000'000'000;

class StepFaults {
 public:
  /// References are not copied. Throws Error for faults that cannot be injected on a stream.
  StepFaults(const GpuMachine& machine, const Program& program, const BackendRequest& request);

  /// Until then, no rank dies or hangs.
  void arm() { is_armed_ = true; }

  void reset() { stop_.set(0); }    ///< begins a new step
  void release() { stop_.set(1); }  ///< ends all waiting that was injected

  /// Enqueue what comes before the op, and what comes after it.
  void enqueue_before(InstructionId id, void* stream) const;
  void enqueue_after(InstructionId id, void* stream) const;

  /// Whether the rank dies at this instruction.
  bool kills(InstructionId id) const;

 private:
  bool blocks(InstructionId id) const;

  const GpuRuntime& gpu_;
  Nanos bound_;  ///< of the time for which a blocked kernel waits
  InjectionTable injections_;
  GpuFlag stop_;
  bool is_armed_ = false;
};

}  // namespace bubblescope::exec
