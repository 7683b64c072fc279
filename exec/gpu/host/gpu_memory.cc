// Predicts the activation memory of a stage on a device.
#include "exec/gpu/host/device_memory.h"
#include "exec/gpu/host/precision.h"

namespace bubblescope::exec {

namespace {

/// Entries of the matrices named in gpu_stage.h, over all slices of a micro-batch.
struct Entries {
  std::int64_t kept = 0;     ///< between forward and input gradient
  std::int64_t left = 0;     ///< between input gradient and weight gradient
  std::int64_t mixed = 0;    ///< part of `kept`: recomputed by selective recomputation
  std::int64_t context = 0;  ///< part of `kept`: shared between slices
};

/// Does not count the attention weights.
Entries entries_of_blocks(const TransformerShape& shape, std::int32_t slices) {
  const std::int64_t rows = shape.rows();
  const std::int64_t products = rows * (8 * shape.width + 2 * shape.inner());
  const std::int64_t context = slices > 1 ? rows * 3 * shape.width : 0;
  const std::int64_t blocks = shape.blocks_per_stage;
  return {blocks * products, blocks * products, blocks * rows * shape.width, blocks * context};
}

/// The kept attention weights: one float32 per row with flash attention, else all of them. The row
/// of a slice's query has an entry for every position up to the end of the slice.
Bytes weight_bytes(const TransformerShape& shape, std::int32_t slices, const DeviceOptions& device,
                   std::int64_t bytes_per_entry) {
  const Bytes blocks = shape.blocks_per_stage;
  if (device.attention == Attention::kFlash)
    return blocks * shape.rows() * shape.heads * Bytes{sizeof(float)};
  std::int64_t entries = 0;
  for (std::int32_t slice = 0; slice < slices; ++slice) {
    const Positions positions = positions_of(shape.sequence, slices, slice);
    entries += std::int64_t{positions.count} * positions.end();
  }
  return blocks * entries * shape.batch * shape.heads * bytes_per_entry;
}

Entries entries_of_stage(const Schedule& schedule, const TransformerShape& shape,
                         std::int32_t stage) {
  Entries entries = entries_of_blocks(shape, schedule.shape.slices);
  const std::int64_t rows = shape.rows();
  if (schedule.is_last(stage)) {
    entries.kept += rows * (2 * shape.width + shape.vocabulary);
    entries.left += rows * (shape.width + shape.vocabulary);
  }
  if (schedule.is_first(stage)) entries.left += rows * shape.width;
  return entries;
}

/// Gain gradients are float32, and every slice has its own.
Bytes gain_bytes(const Schedule& schedule, const TransformerShape& shape, std::int32_t stage) {
  const std::int64_t gains = 2 * shape.blocks_per_stage + (schedule.is_last(stage) ? 1 : 0);
  return gains * schedule.shape.slices * shape.width * Bytes{sizeof(float)};
}

}  // namespace

/// Slices need different amounts for attention, so the memory of an op is the mean over slices.
MemoryModel device_training_memory(const Schedule& schedule, const TrainingOptions& options,
                                   const DeviceOptions& device) {
  const TransformerShape& shape = options.model;
  const Bytes bytes_per_entry = entry_bytes(dtype_of(device.precision));
  const std::int32_t slices = schedule.shape.slices;
  const Bytes weights = weight_bytes(shape, slices, device, bytes_per_entry);
  MemoryModel memory;
  for (std::int32_t stage = 0; stage < schedule.stages(); ++stage) {
    const Entries entries = entries_of_stage(schedule, shape, stage);
    const Bytes kept = (entries.kept * bytes_per_entry + weights) / slices;
    const Bytes left =
        (entries.left * bytes_per_entry + gain_bytes(schedule, shape, stage)) / slices;
    memory.activation_bytes.push_back({kept, left - kept, -left});
    const Bytes input = schedule.is_first(stage) ? 0 : Bytes{shape.rows()} * shape.width;
    const bool selective = schedule.recompute(stage) == Recompute::kSelective;
    const Bytes checkpoint = selective ? entries.kept - entries.mixed : input + entries.context;
    memory.checkpoint_bytes.push_back(checkpoint * bytes_per_entry / slices);
  }
  return memory;
}

}  // namespace bubblescope::exec
