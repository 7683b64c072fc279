// Predicts the peak of every pool for a given Timeline.

#include "exec/gpu/host/device_memory.h"
#include "exec/gpu/host/memory_tracker.h"
#include "exec/gpu/host/pool_dry_run.h"

namespace bubblescope::exec {

namespace {

PoolChange change_of(const SlicePool& pool, OpKind kind) {
  switch (kind) {
    case OpKind::kForward: return pool.forward;
    case OpKind::kRecompute: return pool.recompute;
    case OpKind::kInputGrad: return pool.input_grad;
    case OpKind::kWeightGrad: return pool.weight_grad;
    case OpKind::kBackward: return pool.input_grad.then(pool.weight_grad);
    case OpKind::kEvict: return {-pool.kept, 0};
    case OpKind::kLoad: return {pool.kept, pool.kept};
    case OpKind::kSendForward:
    case OpKind::kRecvForward:
    case OpKind::kSendBackward:
    case OpKind::kRecvBackward:
    case OpKind::kWaitSendForward:
    case OpKind::kWaitSendBackward:
    case OpKind::kUnshard:
    case OpKind::kReshard:
    case OpKind::kReduceGrad:
    case OpKind::kNorm:
    case OpKind::kOptimizer:
    case OpKind::kWaitReduceGrad:
    case OpKind::kIdle: break;
  }
  return {};
}

}  // namespace

std::vector<Bytes> predict_pool_bytes(const TimedProgram& step, const TrainingOptions& options,
                                      const DeviceOptions& device) {
  std::vector<std::vector<SlicePool>> stages;
  for (std::int32_t stage = 0; stage < step.schedule->stages(); ++stage)
    stages.push_back(dry_run_stage(step.schedule, options, device, stage));
  MemoryTracker held(step.program.size(), step.program.ranks);
  for (InstructionId id = 0; id < step.program.size(); ++id) {
    const Instruction& instruction = step.program.instructions[id];
    const Op& op = instruction.op;
    if ((!is_compute(op.kind) && !is_copy(op.kind)) || instruction.role != Role::kWork) continue;
    const PoolChange change = change_of(
        stages[static_cast<std::size_t>(op.stage)][static_cast<std::size_t>(op.slice)], op.kind);
    held.change(id, instruction.rank, change.added, change.during);
  }
  held.note_step([&](InstructionId id) {
    return Span{id, step.timeline.start[id], step.timeline.end[id]};
  });
  return held.peaks();
}

}  // namespace bubblescope::exec
