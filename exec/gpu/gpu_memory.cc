// What a stage on a device holds, counted without one.
#include "exec/job.h"

namespace bubblescope {

namespace {

/// The matrices that gpu_stage.h names, by their columns; all have a row per token.
struct Columns {
  std::int64_t kept = 0;  ///< between forward and input gradient
  std::int64_t left = 0;  ///< between input gradient and weight gradient
};

Columns columns_of_block(const TransformerShape& shape) {
  const std::int64_t width = shape.width;
  const std::int64_t inner = shape.inner();
  const std::int64_t attention = std::int64_t{shape.heads} * shape.sequence;
  return {5 * width + 3 * width + 2 * inner + attention, 5 * width + 3 * width + 2 * inner};
}

/// What selective recomputation makes again: the weights of attention, and the values they mixed.
Bytes attention_bytes(const TransformerShape& shape, std::int64_t number) {
  return (std::int64_t{shape.heads} * shape.sequence + shape.width) * shape.blocks_per_stage *
         shape.rows() * number;
}

}  // namespace

MemoryModel device_training_memory(const Schedule& schedule, const TrainingOptions& options,
                                   Precision precision) {
  const TransformerShape& shape = options.model;
  const std::int64_t number = precision == Precision::kBfloat16 ? 2 : 4;
  const auto gain = static_cast<std::int64_t>(sizeof(float)) * shape.width;
  MemoryModel memory;
  for (std::int32_t stage = 0; stage < schedule.stages(); ++stage) {
    const Columns block = columns_of_block(shape);
    Columns all{shape.blocks_per_stage * block.kept, shape.blocks_per_stage * block.left};
    std::int64_t gains = 2 * shape.blocks_per_stage;
    if (schedule.is_last(stage)) {
      all.kept += 2 * shape.width + shape.vocabulary;
      all.left += shape.width + shape.vocabulary;
      ++gains;
    }
    if (schedule.is_first(stage)) all.left += shape.width;
    const Bytes kept = all.kept * shape.rows() * number;
    const Bytes left = all.left * shape.rows() * number + gains * gain;
    memory.activation_bytes.push_back({kept, left - kept, -left});
    const Bytes input = schedule.is_first(stage) ? 0 : Bytes{shape.rows()} * shape.width * number;
    const bool selective = schedule.recompute(stage) == Recompute::kSelective;
    memory.checkpoint_bytes.push_back(selective ? kept - attention_bytes(shape, number) : input);
  }
  return memory;
}

}  // namespace bubblescope
