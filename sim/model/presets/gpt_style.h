// Models of GPT-3's style.
#pragma once

#include <cstdint>

#include "sim/model/transformer.h"

namespace bubblescope::inline sim {

/// The sizes by which models of this style differ.
struct GptSize {
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t sequence = 2048;
};

/// A model with learned positions, tied embeddings, dropout, GPT-2's vocabulary padded to a
/// multiple of 1024 as Megatron-LM does for tensor parallelism, and a network four times as wide as
/// the hidden state.
inline Transformer make_gpt(const GptSize& size) {
  Transformer model;
  model.layers = size.layers;
  model.hidden = size.hidden;
  model.heads = model.key_value_heads = size.heads;
  model.head_size = size.hidden / size.heads;
  model.feed_forward = 4 * size.hidden;
  model.dropout = true;
  model.vocabulary = 51'200;
  model.tied_embeddings = true;
  model.sequence = model.position_table = size.sequence;
  return model;
}

}  // namespace bubblescope::inline sim
