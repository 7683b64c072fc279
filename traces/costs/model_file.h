// Descriptions of models: Hugging Face's config.json, or a file written by hand with its keys.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/model/transformer.h"

namespace bubblescope::traces {

/// A model, and what its file leaves open or may not mean, for the user to know: "no
/// intermediate_size: 11008 is transformers' default for llama".
struct ModelFile {
  Transformer model;
  std::vector<std::string> notes;
};

/// Reads configurations of the model_type's bloom, cohere, deepseek_v2, deepseek_v3, falcon, gemma,
/// gemma2, gpt2, gpt_neox, llama, mistral, mixtral, olmo, olmo2, opt, phi3, qwen2, qwen2_moe,
/// qwen3, qwen3_moe and starcoder2; any other is refused. A file written by hand needs no
/// model_type and is a Llama:
///
///   {"hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
///    "num_key_value_heads": 8, "intermediate_size": 14336, "hidden_act": "silu",
///    "vocab_size": 128256, "max_position_embeddings": 8192, "tie_word_embeddings": false}
///
/// Mixtures of experts: "num_local_experts" (or "n_routed_experts", "num_experts"),
/// "num_experts_per_tok", "moe_intermediate_size", "n_shared_experts" (or
/// "shared_expert_intermediate_size"), "first_k_dense_replace"; latent attention: "q_lora_rank",
/// "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"; multi-token prediction:
/// "num_nextn_predict_layers". Other keys are not read. A missing key has the default of
/// transformers for the model_type; without its experts one that always has some is refused. Throws
/// Error with the JSON pointer of the first fault.
ModelFile parse_model(std::string_view text, const std::string& file);
ModelFile read_model(const std::string& path);

}  // namespace bubblescope::traces
