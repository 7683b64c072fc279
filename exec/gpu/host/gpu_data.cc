// Stores the tokens in the order of micro-batches and slices.
#include "exec/gpu/host/gpu_data.h"

namespace bubblescope::exec {

namespace {

std::size_t count_slices(const Schedule& schedule) {
  return static_cast<std::size_t>(schedule.shape.microbatches) *
         static_cast<std::size_t>(schedule.shape.slices);
}

}  // namespace

GpuData::GpuData(const GpuMachine& machine, const Schedule& schedule,
                 const TrainingOptions& options)
    : machine_(machine), schedule_(schedule), options_(options) {
  const std::size_t tokens = static_cast<std::size_t>(schedule.shape.microbatches) *
                             static_cast<std::size_t>(options.model.rows());
  for (std::int32_t device = 0; device < machine.device_count(); ++device) {
    tokens_.push_back(machine.gpu().allocate(device, 2 * tokens * sizeof(std::int32_t)));
    losses_.push_back(machine.gpu().allocate(device, count_slices(schedule) * sizeof(float)));
  }
}

Positions GpuData::positions_of(std::int32_t slice) const {
  return bubblescope::exec::positions_of(options_.model.sequence, schedule_.shape.slices, slice);
}

void GpuData::upload(std::int32_t step, std::int32_t replica) const {
  std::vector<std::int32_t> inputs;
  std::vector<std::int32_t> targets;
  const std::int32_t microbatches = schedule_.shape.microbatches;
  for (std::int32_t microbatch = 0; microbatch < microbatches; ++microbatch) {
    const Tokens whole = make_tokens(options_, step, replica * microbatches + microbatch);
    for (std::int32_t slice = 0; slice < schedule_.shape.slices; ++slice) {
      const Tokens part = take_tokens(whole, options_.model.sequence, positions_of(slice));
      inputs.insert(inputs.end(), part.inputs.begin(), part.inputs.end());
      targets.insert(targets.end(), part.targets.begin(), part.targets.end());
    }
  }
  inputs.insert(inputs.end(), targets.begin(), targets.end());
  for (const GpuHandle& tokens : tokens_)
    machine_.gpu().upload(tokens.get(), inputs.data(), inputs.size() * sizeof(std::int32_t));
}

GpuTokens GpuData::tokens_of(const Op& op) const {
  const std::int32_t rank = schedule_.rank_of(op.stage, op.microbatch);
  const auto device = static_cast<std::size_t>(machine_.place(rank).device);
  const Positions positions = positions_of(op.slice);
  const std::int64_t rows = options_.model.rows();
  const std::int64_t begin =
      op.microbatch * rows + std::int64_t{options_.model.batch} * positions.begin;
  const auto* const inputs = static_cast<const std::int32_t*>(tokens_[device].get()) + begin;
  auto* const losses = static_cast<float*>(losses_[device].get());
  return {inputs, inputs + schedule_.shape.microbatches * rows,
          losses + schedule_.forward_index(op), positions};
}

/// The loss of a slice is the mean over its own tokens. Each device's losses are read at once.
double GpuData::sum_losses() const {
  std::vector<std::vector<float>> losses(losses_.size());
  const auto read = [&](std::int32_t rank, std::int64_t at) {
    const auto device = static_cast<std::size_t>(machine_.place(rank).device);
    std::vector<float>& known = losses[device];
    if (known.empty()) {
      known.resize(count_slices(schedule_));
      machine_.gpu().download(known.data(), losses_[device].get(), known.size() * sizeof(float));
    }
    return double{known[static_cast<std::size_t>(at)]};
  };
  double sum = 0;
  const std::int32_t stages = schedule_.stages_per_pipeline();
  for (std::int32_t microbatch = 0; microbatch < schedule_.shape.microbatches; ++microbatch) {
    const std::int32_t last = (schedule_.pipeline_of_microbatch(microbatch) + 1) * stages - 1;
    const std::int32_t rank = schedule_.rank_of(last, microbatch);
    if (!machine_.runs(rank)) continue;
    for (std::int32_t slice = 0; slice < schedule_.shape.slices; ++slice) {
      Op op = forward(last, microbatch);
      op.slice = static_cast<std::int16_t>(slice);
      sum += read(rank, schedule_.forward_index(op)) * positions_of(slice).count /
             options_.model.sequence;
    }
  }
  return sum;
}

}  // namespace bubblescope::exec
