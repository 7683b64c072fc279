// Translates Hugging Face's keys to a transformer.
#include "traces/costs/model_file.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "sim/ir/error.h"
#include "traces/files/format.h"
#include "traces/json/json_node.h"

namespace bubblescope::traces {

namespace {

constexpr std::int64_t kLargest = std::int64_t{1} << 24;

/// Properties that a configuration leaves to its model_type (the defaults of Hugging Face's
/// configuration classes).
struct Family {
  std::string_view type;  ///< model_type
  bool gated = true;
  bool tied = false;       ///< unless tie_word_embeddings is given
  bool dropout = false;    ///< unless a rate is given
  bool positions = false;  ///< learned, one per token of the sequence
};

constexpr Family kHandWritten{"", true, false, false, false};
constexpr Family kGpt2{"gpt2", false, true, true, true};
constexpr std::array<Family, 23> kFamilies{{
    {"bloom", false, true},
    {"cohere", true, true},
    {"deepseek_v2"},
    {"deepseek_v3"},
    {"falcon", false, true},
    {"gemma", true, true},
    {"gemma2", true, true},
    {"gemma3_text", true, true},
    kGpt2,
    {"gpt_neox", false},
    {"gpt_oss"},
    {"llama"},
    {"mistral"},
    {"mixtral"},
    {"olmo"},
    {"olmo2"},
    {"opt", false, true, true, true},
    {"phi3"},
    {"qwen2"},
    {"qwen2_moe"},
    {"qwen3"},
    {"qwen3_moe"},
    {"starcoder2", false, true},
}};

/// A configuration, whose keys differ between families of models.
class ModelConfig {
 public:
  explicit ModelConfig(const JsonNode& node) : node_(node) {}

  std::optional<std::int64_t> find(std::initializer_list<const char*> keys,
                                   std::int64_t min_value = 1) const {
    for (const char* key : keys)
      if (const auto member = node_.find(key); member && !member->is_null())
        return member->integer(min_value, kLargest);
    return std::nullopt;
  }

  std::int64_t required(std::initializer_list<const char*> keys) const {
    if (const auto value = find(keys)) return *value;
    return node_.at(*keys.begin()).integer(1, kLargest);  // its error names the first key
  }

  bool flag(const char* key, bool otherwise) const {
    const auto member = node_.find(key);
    return member && !member->is_null() ? member->boolean() : otherwise;
  }

  /// Whether the first of these dropout rates that is present is above 0.
  bool drops(std::initializer_list<const char*> keys, bool otherwise) const {
    for (const char* key : keys)
      if (const auto member = node_.find(key); member && member->number())
        return *member->number() > 0.0;
    return otherwise;
  }

  /// Refuses a value other than the only one that is supported.
  void expect(const char* key, std::int64_t only) const {
    const auto member = node_.find(key);
    if (member && member->is_integer() && *member->number() != static_cast<double>(only))
      member->refuse("must be " + std::to_string(only) + "; another value is not supported");
  }

  /// Selected by model_type; without one the keys decide, as in files written by hand.
  const Family& family() const {
    const auto type = node_.find("model_type");
    if (!type) return node_.find("n_embd") ? kGpt2 : kHandWritten;
    std::string known;
    for (const Family& family : kFamilies) {
      if (family.type == type->text()) return family;
      known += (known.empty() ? "" : ", ") + std::string(family.type);
    }
    type->refuse("'" + type->text() + "' is none of the architectures that are known (" + known +
                 "); where it is built like one of them, write that one's name");
  }

 private:
  const JsonNode& node_;
};

std::optional<Experts> experts_of(const ModelConfig& config) {
  const auto count = config.find({"n_routed_experts", "num_local_experts", "num_experts"}, 0);
  if (!count || *count < 2) return std::nullopt;
  Experts experts;
  experts.count = *count;
  experts.per_token = config.required({"num_experts_per_tok"});
  experts.feed_forward = config.required({"moe_intermediate_size", "intermediate_size"});
  // Qwen's one shared expert is as wide as several of the others.
  const std::int64_t shared = config.find({"shared_expert_intermediate_size"}, 0).value_or(0);
  experts.shared = config.find({"n_shared_experts"}, 0)
                       .value_or((shared + experts.feed_forward / 2) / experts.feed_forward);
  experts.dense_layers = config.find({"first_k_dense_replace"}, 0).value_or(0);
  experts.max_groups = config.find({"topk_group"}, 0).value_or(0);
  return experts;
}

std::optional<LatentAttention> latent_of(const ModelConfig& config) {
  const auto rank = config.find({"kv_lora_rank"});
  if (!rank) return std::nullopt;
  return LatentAttention{config.find({"q_lora_rank"}).value_or(0), *rank,
                         config.required({"qk_rope_head_dim"}), config.required({"v_head_dim"})};
}

/// Falcon has three variants: one key-value head for all heads, one per head, or a number in
/// between.
std::int64_t key_value_heads_of(const ModelConfig& config, std::int64_t heads) {
  if (config.flag("multi_query", false) && !config.flag("new_decoder_architecture", false))
    return 1;
  return config.find({"num_key_value_heads", "num_kv_heads"}).value_or(heads);
}

void set_attention(Transformer& model, const ModelConfig& config) {
  model.heads = config.required({"num_attention_heads", "n_head"});
  model.key_value_heads = key_value_heads_of(config, model.heads);
  model.latent = latent_of(config);
  model.head_size = model.latent ? config.required({"qk_nope_head_dim"})
                                 : config.find({"head_dim"}).value_or(model.hidden / model.heads);
}

/// Layers of local attention: those that layer_types calls so; or all but every n-th
/// (sliding_window_pattern; 6 for Gemma 3, 2 for Gemma 2 and gpt-oss); or, where a window is all
/// that is given, every layer.
void set_windows(Transformer& model, const ModelConfig& config, const JsonNode& node,
                 std::string_view type) {
  const auto window = config.find({"sliding_window"});
  if (!window || !config.flag("use_sliding_window", !type.starts_with("qwen"))) return;
  model.window = *window;
  model.local_layers = model.layers;
  if (const auto types = node.find("layer_types"); types && !types->is_null()) {
    if (types->size() != static_cast<std::size_t>(model.layers))
      types->refuse("has " + std::to_string(types->size()) + " entries for " +
                    std::to_string(model.layers) + " layers; give one per layer");
    model.local_layers = 0;
    for (std::size_t layer = 0; layer < types->size(); ++layer)
      model.local_layers += (*types)[layer].text() == "sliding_attention" ? 1 : 0;
  } else if (const bool gemma3 = type == "gemma3_text"; gemma3 || type == "gemma2" ||
                                                        type == "gpt_oss" ||
                                                        config.find({"sliding_window_pattern"})) {
    model.local_layers -=
        model.layers / config.find({"sliding_window_pattern"}).value_or(gemma3 ? 6 : 2);
  }
  if (model.local_layers == 0) model.window = 0;
}

void set_tables(Transformer& model, const ModelConfig& config, const Family& family) {
  model.vocabulary = config.required({"vocab_size"});
  model.tied_embeddings = config.flag("tie_word_embeddings", family.tied);
  model.sequence =
      config.find({"max_position_embeddings", "n_positions", "seq_length"}).value_or(2048);
  if (family.positions) model.position_table = model.sequence;
}

}  // namespace

Transformer parse_model(std::string_view text, const std::string& file) {
  const JsonFile parsed(text, file);
  const JsonNode node = parsed.root();
  const ModelConfig config(node);
  const Family& family = config.family();
  Transformer model;
  model.layers = config.required({"num_hidden_layers", "n_layer"});
  model.hidden = config.required({"hidden_size", "n_embd", "n_embed"});
  set_attention(model, config);
  const auto inner = config.find({"intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size"});
  model.feed_forward = inner ? *inner : 4 * model.hidden;
  model.gated = family.gated;
  model.dropout = config.drops({"resid_pdrop", "hidden_dropout", "dropout"}, family.dropout);
  set_tables(model, config, family);
  set_windows(model, config, node, family.type);
  config.expect("word_embed_proj_dim", model.hidden);
  for (const char* step : {"decoder_sparse_step", "moe_layer_freq"}) config.expect(step, 1);
  model.predictions = config.find({"num_nextn_predict_layers"}, 0).value_or(0);
  model.experts = experts_of(config);
  if (model.experts) model.experts->biased = family.type == "gpt_oss";
  const std::vector<std::string> faults = find_faults(model);
  if (!faults.empty()) throw Error(file + ": " + faults[0]);
  return model;
}

Transformer read_model(const std::string& path) { return parse_model(read_file(path), path); }

}  // namespace bubblescope::traces
