// How far a step has come: per stream, what is enqueued and what has ended.
#pragma once

#include <cstdint>
#include <vector>

#include "exec/gpu/host/gpu_lanes.h"
#include "exec/runtime/backend.h"

namespace bubblescope::exec {

class StepProgress {
 public:
  enum class State : std::uint8_t { kWaits, kRuns, kEnded };

  /// References are not copied.
  StepProgress(const GpuLanes& lanes, const Program& program);

  /// The Program's instructions in the order of the plan, in which they are enqueued.
  const std::vector<InstructionId>& ids() const { return ids_; }

  void reset();  ///< begins a new step
  void note_enqueued(InstructionId id);
  bool poll();                   ///< returns whether all that is enqueued has ended
  std::size_t enqueued() const;  ///< how many are
  std::size_t ended() const;     ///< how many had ended at the last poll()
  /// The instructions at which streams were at the last poll().
  std::vector<InstructionId> at_heads() const;

  /// After an abort: polls, and keeps the state of every instruction from then on.
  void record_states();
  void record_completion();  ///< of the whole step
  State state(InstructionId id) const { return state_[id]; }

  /// Where each lane of a rank was blocked when the states were recorded.
  std::vector<BlockedAt> find_blocked(std::int32_t rank) const;

 private:
  BlockedAt explain(InstructionId id) const;

  const GpuLanes& lanes_;
  const Program& program_;
  std::vector<InstructionId> ids_;
  std::vector<std::vector<InstructionId>> queues_;  ///< [stream]: those of ids_
  std::vector<std::size_t> enqueued_;               ///< [stream]
  std::vector<std::size_t> ended_;                  ///< [stream]
  std::vector<State> state_;                        ///< [instruction]
};

}  // namespace bubblescope::exec
