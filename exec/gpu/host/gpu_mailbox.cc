// Allocates the buffers of all slots.
#include "exec/gpu/host/gpu_mailbox.h"

namespace bubblescope::exec {

GpuMailbox::GpuMailbox(const GpuMachine& machine, const Schedule& schedule,
                       const TransformerShape& model, BubblescopeDtype dtype)
    : index_(schedule), inbox_(index_.size()), outbox_(index_.size()) {
  const Shape& whole = schedule.shape;
  for (std::int32_t stage = 0; stage < schedule.stages(); ++stage)
    for (std::int32_t microbatch = 0; microbatch < whole.microbatches; ++microbatch) {
      const std::int32_t pipeline = stage / schedule.stages_per_pipeline();
      if (schedule.pipeline_of_microbatch(microbatch) != pipeline) continue;
      for (std::int32_t slice = 0; slice < whole.slices; ++slice) {
        const Positions positions = positions_of(model.sequence, whole.slices, slice);
        const GpuMatrix shape{nullptr, model.batch * positions.count, model.width, dtype};
        if (!schedule.is_first(stage))
          add(machine, schedule, {Direction::kForward, stage, microbatch, slice}, shape);
        if (!schedule.is_last(stage) && !schedule.forward_only)
          add(machine, schedule, {Direction::kBackward, stage, microbatch, slice}, shape);
      }
    }
}

void GpuMailbox::add(const GpuMachine& machine, const Schedule& schedule, const Slot& slot,
                     GpuMatrix shape) {
  const auto place_in = [&](std::int32_t stage) {
    const std::int32_t rank = schedule.rank_of(stage, slot.microbatch);
    const auto bytes = static_cast<std::size_t>(shape.bytes());
    memory_.push_back(machine.gpu().allocate(machine.place(rank).device, bytes));
    const std::vector<char> zeros(bytes, 0);
    machine.gpu().upload(memory_.back().get(), zeros.data(), bytes);
    shape.data = memory_.back().get();
    return shape;
  };
  const std::int32_t producer = slot.stage + (slot.direction == Direction::kForward ? -1 : 1);
  const std::int32_t from = schedule.rank_of(producer, slot.microbatch);
  const std::int32_t to = schedule.rank_of(slot.stage, slot.microbatch);
  if (machine.runs(to)) inbox_[index_(slot)] = place_in(slot.stage);
  if (from != to && machine.runs(from)) outbox_[index_(slot)] = place_in(producer);
}

const GpuMatrix& GpuMailbox::outbox(const Slot& slot) const {
  const GpuMatrix& apart = outbox_[index_(slot)];
  return apart.data != nullptr ? apart : inbox(slot);
}

GpuMessage GpuMailbox::find(const Op& op) const {
  const bool goes_forward = op.kind == OpKind::kSendForward;
  const Slot slot{goes_forward ? Direction::kForward : Direction::kBackward,
                  op.stage + (goes_forward ? 1 : -1), op.microbatch, op.slice};
  return {outbox(slot), inbox(slot)};
}

}  // namespace bubblescope::exec
