// Descriptions of models: Hugging Face's config.json, or a file written by hand with its keys.
#pragma once

#include <string>
#include <string_view>

#include "sim/model/transformer.h"

namespace bubblescope {

/// Reads the keys of Llama, Mistral, Mixtral, Qwen, DeepSeek and GPT-2 configurations:
///
///   {"hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
///    "num_key_value_heads": 8, "intermediate_size": 14336, "hidden_act": "silu",
///    "vocab_size": 128256, "max_position_embeddings": 8192, "tie_word_embeddings": false}
///
/// Mixtures of experts: "num_local_experts" (or "n_routed_experts", "num_experts"),
/// "num_experts_per_tok", "moe_intermediate_size", "n_shared_experts", "first_k_dense_replace";
/// latent attention: "q_lora_rank", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim",
/// "v_head_dim"; multi-token prediction: "num_nextn_predict_layers". Other keys are not read.
/// Throws Error with the JSON pointer of the first fault.
Transformer parse_model(std::string_view text, const std::string& file);
Transformer read_model(const std::string& path);

}  // namespace bubblescope
