// How the size of attention's heads fits its kernels.
//
// Matrix units read 16 bytes at a time. Heads of a multiple of 8 numbers start on such a border;
// others do not, and the GEMMs of their scores and values fall back to far slower kernels.
// Flash attention needs that multiple, too, and computes with heads that are padded further:
//
//   head of   fused attention computes with   GEMMs of saved scores
//   128       128                             at full rate
//   104       128                             at full rate
//   150       192, after padding to 152       at 3.4 % of the peak on an A100
#pragma once

#include <cstdint>
#include <string>

#include "sim/model/layer_cost.h"

namespace bubblescope::inline sim {

/// Whether a head's numbers are a multiple of 8.
bool are_heads_aligned(const Transformer& model);

/// The size that flash attention's kernels are built for: the next multiple of 32, above 192 one of
/// 256 (Dao-AILab/flash-attention, csrc/flash_attn/flash_api.cpp, head_size_rounded). Larger heads
/// are taken as they are.
std::int64_t pad_head(std::int64_t size);

/// Whether a runtime's fused attention takes these heads. PyTorch pads them to a multiple of 8
/// (scaled_dot_product_attention); Transformer Engine, below Megatron-LM and NeMo, falls back to
/// GEMMs that save the scores (get_attention_backend, "head_dim_qk % 8 = 0").
bool can_fuse_attention(const Transformer& model, bool pytorch);

/// Says where the size of the heads makes attention slow, and which sizes would be faster; empty if
/// it does not.
std::string describe_heads(const ModelOnDevices& on);

}  // namespace bubblescope::inline sim
