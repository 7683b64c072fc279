// PyTorch's rules are those of torch/distributed (fsdp/_fully_shard, pipelining/stage.py, tensor).
#include "sim/model/rank_buffers.h"

#include <algorithm>

#include "sim/ir/range.h"
#include "sim/model/activation_bytes.h"

namespace bubblescope::inline sim {

namespace {

/// The layer whose backward runs holds what it has selectively recomputed.
Bytes count_selected_bytes(const ModelOnDevices& on) {
  if (on.parallel.recompute != Recompute::kSelective) return 0;
  return count_selectively_recomputed(on.model, on.parallel, on.model.layers - 1);
}

/// All that a layer saves without recomputation.
Bytes count_layer_bytes(const ModelOnDevices& on) {
  Parallelism whole = on.parallel;
  whole.recompute = Recompute::kNone;
  return estimate_layer_memory(on.model, whole, on.model.layers - 1).forward;
}

/// Sequence parallelism gathers the input of one GEMM at a time; all tensor ranks then hold all of
/// it.
Bytes count_gathered_input_bytes(const Parallelism& parallel, std::int64_t hidden) {
  if (parallel.norm_split() == 1) return 0;
  return 2 * parallel.tokens() * hidden;
}

/// The layer that computes and the next one, in 16 bits; and in PyTorch the head, which FSDP
/// gathers as a group of its own.
double count_gathered_weight_bytes(const ModelOnDevices& on, const RankLoad& load) {
  const Parallelism& parallel = on.parallel;
  // With one copy nothing is sharded; PyTorch still copies what its one rank gathers.
  const bool is_whole = !parallel.pytorch && parallel.copies() == 1;
  if (parallel.zero_stage < 3 || load.layers == 0 || on.counts_gathered || is_whole) return 0;
  const double tables = static_cast<double>(count_head_parameters(on.model)) / on.parallel.tensor;
  return 4 * load.per_layer() + (on.parallel.pytorch && load.head ? 2 * tables : 0);
}

/// FSDP copies a layer's 16-bit gradients into a buffer to reduce them, of 32 bits where there are
/// weights of 32 bits.
double count_reduced_bytes(const ModelOnDevices& on, const RankLoad& load) {
  if (!on.parallel.pytorch || on.parallel.data == 1 || load.layers == 0) return 0;
  return (on.parallel.gradients == Gradients::kPure ? 4 : 6) * load.per_layer();
}

/// Two messages each way, unless memory over time has those that leave. PyTorch's pipelines
/// allocate a buffer per micro-batch to receive activations and another for gradients.
double count_pipeline_bytes(const ModelOnDevices& on, const Shape& shape) {
  if (shape.ranks == 1) return 0;
  const double message = count_message_bytes(on, 1);
  if (on.parallel.pytorch) return 2.0 * shape.chunks * shape.microbatches * message;
  return (on.counts_sends ? 2 : 4) * message;
}

}  // namespace

double count_message_bytes(const ModelOnDevices& on, std::int32_t slices) {
  return 2.0 * static_cast<double>(on.parallel.tokens() * on.model.hidden) /
         on.parallel.norm_split() / slices;
}

void RankLoad::add(const StageLoad& stage) {
  layers += stage.layers;
  parameters += stage.parameters;
  tables += stage.tables;
  held_again = std::max(held_again, stage.held_again);
}

RankBuffers::RankBuffers(const ModelOnDevices& on, const Shape& shape)
    : on_(on),
      common_(round_bytes(count_pipeline_bytes(on, shape), "messages") + count_selected_bytes(on) +
              count_gathered_input_bytes(on.parallel, on.model.hidden)),
      layer_(count_layer_bytes(on)) {}

Bytes RankBuffers::count(const RankLoad& load) const {
  return common_ + load.held_again * layer_ +
         round_bytes(count_gathered_weight_bytes(on_, load) + count_reduced_bytes(on_, load),
                     "a layer's weights and gradients");
}

}  // namespace bubblescope::inline sim
