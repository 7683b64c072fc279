// Hugging Face's names for what a transformer is.
#include "traces/model_file.h"

#include <algorithm>
#include <initializer_list>

#include "sim/ir/error.h"
#include "traces/format.h"
#include "traces/json_node.h"

namespace bubblescope {

namespace {

constexpr std::int64_t kLargest = std::int64_t{1} << 24;

/// A configuration, whose keys differ between families of models.
class Config {
 public:
  explicit Config(const JsonNode& node) : node_(node) {}

  std::optional<std::int64_t> find(std::initializer_list<const char*> keys,
                                   std::int64_t least = 1) const {
    for (const char* key : keys)
      if (const auto member = node_.find(key); member && !member->value().is_null())
        return member->integer(least, kLargest);
    return std::nullopt;
  }

  std::int64_t required(std::initializer_list<const char*> keys) const {
    if (const auto value = find(keys)) return *value;
    return node_.at(*keys.begin()).integer(1, kLargest);  // complains of the first name
  }

  bool flag(const char* key, bool otherwise) const {
    const auto member = node_.find(key);
    return member ? member->boolean() : otherwise;
  }

  bool has(const char* key) const { return node_.find(key).has_value(); }

 private:
  const JsonNode& node_;
};

std::optional<Experts> experts_of(const Config& config) {
  const auto count = config.find({"n_routed_experts", "num_local_experts", "num_experts"}, 0);
  if (!count || *count < 2) return std::nullopt;
  Experts experts;
  experts.count = *count;
  experts.per_token = config.required({"num_experts_per_tok"});
  experts.shared = config.find({"n_shared_experts"}, 0).value_or(0);
  experts.feed_forward = config.required({"moe_intermediate_size", "intermediate_size"});
  experts.dense_layers = config.find({"first_k_dense_replace"}, 0).value_or(0);
  return experts;
}

std::optional<LatentAttention> latent_of(const Config& config) {
  const auto rank = config.find({"kv_lora_rank"});
  if (!rank) return std::nullopt;
  return LatentAttention{config.find({"q_lora_rank"}).value_or(0), *rank,
                         config.required({"qk_rope_head_dim"}), config.required({"v_head_dim"})};
}

}  // namespace

Transformer parse_model(std::string_view text, const std::string& file) {
  const Json parsed = parse_json(text, file);
  const JsonNode node(parsed, file);
  const Config config(node);
  Transformer model;
  model.layers = config.required({"num_hidden_layers", "n_layer"});
  model.hidden = config.required({"hidden_size", "n_embd"});
  model.heads = config.required({"num_attention_heads", "n_head"});
  model.key_value_heads = config.find({"num_key_value_heads"}).value_or(model.heads);
  model.latent = latent_of(config);
  if (model.latent)
    model.head_size = config.required({"qk_nope_head_dim"});
  else
    model.head_size = config.find({"head_dim"}).value_or(model.hidden / model.heads);
  const bool gpt2 = config.has("n_embd");
  const auto inner = config.find({"intermediate_size", "n_inner"});
  model.feed_forward = inner ? *inner : 4 * model.hidden;
  model.gated = !gpt2;
  model.dropout = gpt2;
  model.vocabulary = config.required({"vocab_size"});
  model.tied_embeddings = config.flag("tie_word_embeddings", gpt2);
  model.predictions = config.find({"num_nextn_predict_layers"}, 0).value_or(0);
  model.sequence = config.required({"max_position_embeddings", "n_positions"});
  if (gpt2) model.position_table = model.sequence;
  model.experts = experts_of(config);
  const std::vector<std::string> faults = faults_of(model);
  if (!faults.empty()) throw Error(file + ": " + faults[0]);
  return model;
}

Transformer read_model(const std::string& path) { return parse_model(read_file(path), path); }

}  // namespace bubblescope
