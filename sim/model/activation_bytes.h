// Activation memory: the tensors that a layer saves for its backward.
#pragma once

#include <cstdint>

#include "sim/ir/units.h"
#include "sim/model/memory_model.h"
#include "sim/model/parallelism.h"
#include "sim/model/transformer.h"

namespace bubblescope::inline sim {

/// The tensors that selective recomputation gives back to the one layer whose backward runs.
/// PyTorch recomputes the whole layer at once, Megatron attention and network one after the other.
Bytes count_selectively_recomputed(const Transformer& model, const Parallelism& parallel,
                                   std::int64_t layer);

/// The bytes that F takes and that I and W change: after I the inputs of the GEMMs and the
/// gradients of their outputs remain until W (arXiv 2401.10241, section 2: 32 s b h for GPT-style
/// layers).
MemoryDelta estimate_layer_memory(const Transformer& model, const Parallelism& parallel,
                                  std::int64_t layer);

/// Logits, as the runtime's loss holds them, and the inputs of the head and of its norm.
MemoryDelta estimate_head_memory(const Transformer& model, const Parallelism& parallel);
/// Returns the memory of all multi-token prediction modules: a layer, the head again and the
/// projection's input.
MemoryDelta estimate_prediction_memory(const Transformer& model, const Parallelism& parallel);
/// Token ids, and the dropout mask if there is one.
MemoryDelta estimate_embedding_memory(const Transformer& model, const Parallelism& parallel);

}  // namespace bubblescope::inline sim
