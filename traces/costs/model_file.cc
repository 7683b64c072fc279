// Translates Hugging Face's keys to a transformer.
#include "traces/costs/model_file.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <set>
#include <string_view>
#include <vector>

#include "sim/ir/counted.h"
#include "sim/ir/error.h"
#include "sim/ir/nearest_names.h"
#include "traces/costs/own_format.h"
#include "traces/files/file.h"
#include "traces/json/json_node.h"

namespace bubblescope::traces {

namespace {

constexpr std::int64_t kMaxSize = std::int64_t{1} << 24;

/// Properties that a configuration leaves to its model_type: the defaults of the configuration
/// classes of transformers, release 5.24.
struct Family {
  std::string_view type;  ///< model_type
  bool gated = true;
  bool tied = false;                                 ///< unless tie_word_embeddings is given
  bool dropout = false;                              ///< unless a rate is given
  bool positions = false;                            ///< learned, one per token of the sequence
  std::optional<std::int64_t> feed_forward = {};     ///< nullopt: no fixed number
  std::optional<std::int64_t> key_value_heads = {};  ///< nullopt: one per head
  std::optional<std::int64_t> head_size = {};        ///< nullopt: hidden_size / heads
  std::int64_t sequence = 2048;
  bool query_key_norms = false;  ///< queries and keys have norms of their own
};

constexpr Family kHandWritten{""};
constexpr Family kGpt2{"gpt2", false, true, true, true, {}, {}, {}, 1024};
constexpr std::array<Family, 23> kFamilies{{
    {"bloom", false, true},
    {"cohere", true, true, false, false, 22528, {}, {}, 8192},
    {"deepseek_v2", true, false, false, false, 11008},
    {"deepseek_v3", true, false, false, false, 18432, 128, {}, 4096},
    {"falcon", false, true},
    {"gemma", true, true, false, false, 24576, 16, 256, 8192},
    {"gemma2", true, true, false, false, 9216, 4, 256, 8192},
    {"gemma3_text", true, true, false, false, 9216, 4, 256, 131'072, true},
    kGpt2,
    {"gpt_neox", false, false, false, false, 24576},
    {"gpt_oss", true, false, false, false, 2880, 8, 64, 131'072},
    {"llama", true, false, false, false, 11008},
    {"mistral", true, false, false, false, 14336, 8, {}, 131'072},
    {"mixtral", true, false, false, false, 14336, 8, {}, 131'072},
    {"olmo", true, false, false, false, 11008},
    {"olmo2", true, false, false, false, 11008, {}, {}, 2048, true},
    {"opt", false, true, true, true, 3072},
    {"phi3", true, false, false, false, 8192, {}, {}, 4096},
    {"qwen2", true, false, false, false, 22016, 32, {}, 32768},
    {"qwen2_moe", true, false, false, false, 5632, 16, {}, 32768},
    {"qwen3", true, false, false, false, 22016, 32, 128, 32768, true},
    {"qwen3_moe", true, false, false, false, 6144, 4, {}, 32768, true},
    {"starcoder2", false, true, false, false, 12288, 2, {}, 4096},
}};

/// The family of a model_type; without one the keys decide, as in files written by hand.
const Family& find_family(const JsonNode& node) {
  const auto type = node.find("model_type");
  if (!type) return node.find("n_embd") ? kGpt2 : kHandWritten;
  std::string known;
  for (const Family& family : kFamilies) {
    if (family.type == type->text()) return family;
    known += (known.empty() ? "" : ", ") + std::string(family.type);
  }
  type->refuse("'" + type->text() + "' is not one of the architectures that are known (" + known +
               "); where it is built like one of them, write that one's name");
}

/// A configuration, whose keys differ between families of models. It keeps track of the keys that
/// were asked for, and notes each default that stands for a missing one.
class ModelConfig {
 public:
  explicit ModelConfig(const JsonNode& node) : node_(node), family_(find_family(node)) {}

  const Family& family() const { return family_; }

  /// The value of a key; nullopt where it is missing or null.
  std::optional<JsonNode> member(const std::string& key) {
    // A node keeps the pointer to its key.
    auto found = node_.find(asked_.insert(key).first->c_str());
    return found && !found->is_null() ? found : std::nullopt;
  }

  bool is_null(const char* key) const {
    const auto found = node_.find(key);
    return found && found->is_null();
  }

  std::optional<std::int64_t> find(std::initializer_list<const char*> keys,
                                   std::int64_t min_value = 1) {
    std::optional<std::int64_t> value;
    for (const char* key : keys)
      if (const auto found = member(key); found && !value)
        value = found->integer(min_value, kMaxSize);
    return value;
  }

  /// The value of the first key that is there, else the family's default, and notes that; throws
  /// Error that names the first key where there is neither.
  std::int64_t find_or(std::initializer_list<const char*> keys,
                       const std::optional<std::int64_t>& usual) {
    if (const auto value = find(keys)) return *value;
    if (!usual) return node_.at(*keys.begin()).integer(1, kMaxSize);
    const std::string whose =
        family_.type.empty() ? "" : " is transformers' default for " + std::string(family_.type);
    notes_.push_back("no " + std::string(*keys.begin()) + ": " + std::to_string(*usual) +
                     (whose.empty() ? " is assumed" : whose));
    return *usual;
  }

  std::int64_t required(std::initializer_list<const char*> keys) { return find_or(keys, {}); }

  bool flag(const char* key, bool otherwise) {
    const auto found = member(key);
    return found ? found->boolean() : otherwise;
  }

  /// Whether the first of these dropout rates that is present is above 0.
  bool drops(std::initializer_list<const char*> keys, bool otherwise) {
    for (const char* key : keys)
      if (const auto found = member(key); found && found->number()) return *found->number() > 0.0;
    return otherwise;
  }

  /// Refuses a value other than the only one that is supported.
  void expect(const char* key, std::int64_t only) {
    const auto found = member(key);
    if (found && found->is_integer() && *found->number() != static_cast<double>(only))
      found->refuse("must be " + std::to_string(only) + "; another value is not supported");
  }

  /// The defaults that were taken, and the keys that were not read and look like a missing one.
  std::vector<std::string> notes() const {
    std::vector<std::string> missing;
    for (const std::string& key : asked_)
      if (!node_.find(key.c_str())) missing.push_back(key);
    std::vector<std::string> notes = notes_;
    for (const JsonNode& member : node_.members()) {
      const std::string key = member.key();
      if (asked_.contains(key)) continue;
      const std::vector<std::string> nearest = nearest_names(key, missing);
      if (!nearest.empty() && is_typo(key, nearest.front()))
        notes.push_back("'" + key + "' is not read; '" + nearest.front() + "' would be");
    }
    return notes;
  }

 private:
  /// Abbreviations and parts of names, which are near as well, are keys of their own here, and so
  /// are names of other things, which begin otherwise.
  static bool is_typo(const std::string& key, const std::string& near) {
    return key.front() == near.front() &&
           std::max(key.size(), near.size()) - std::min(key.size(), near.size()) <= 2;
  }

  const JsonNode& node_;
  const Family& family_;
  std::set<std::string> asked_{"model_type"};
  std::vector<std::string> notes_;
};

/// The keys of an architecture that always has experts; without them it would be another model.
struct ExpertKeys {
  std::string_view type;
  const char* count;
  const char* width;
};

constexpr std::array<ExpertKeys, 6> kExpertKeys{{
    {"deepseek_v2", "n_routed_experts", "moe_intermediate_size"},
    {"deepseek_v3", "n_routed_experts", "moe_intermediate_size"},
    {"gpt_oss", "num_local_experts", "intermediate_size"},
    {"mixtral", "num_local_experts", "intermediate_size"},
    {"qwen2_moe", "num_experts", "moe_intermediate_size"},
    {"qwen3_moe", "num_experts", "moe_intermediate_size"},
}};

std::optional<Experts> experts_of(ModelConfig& config) {
  const auto* const keys =
      std::find_if(kExpertKeys.begin(), kExpertKeys.end(),
                   [&](const auto& of) { return of.type == config.family().type; });
  const bool always = keys != kExpertKeys.end();
  // A null stands for none.
  if (always && !config.is_null(keys->count) && !config.find({keys->count}, 0))
    config.required({keys->count});  // refuses, with the key's name
  const auto count = config.find({"n_routed_experts", "num_local_experts", "num_experts"}, 0);
  if (!count || *count < 2) return std::nullopt;
  Experts experts;
  experts.count = *count;
  experts.per_token = config.required({"num_experts_per_tok"});
  experts.feed_forward = always ? config.required({keys->width})
                                : config.required({"moe_intermediate_size", "intermediate_size"});
  // Qwen's one shared expert is as wide as several of the others.
  const std::int64_t shared = config.find({"shared_expert_intermediate_size"}, 0).value_or(0);
  experts.shared = config.find({"n_shared_experts"}, 0)
                       .value_or((shared + experts.feed_forward / 2) / experts.feed_forward);
  experts.dense_layers = config.find({"first_k_dense_replace"}, 0).value_or(0);
  experts.every = config.find({"interleave_moe_layer_step", "decoder_sparse_step"}).value_or(1);
  experts.max_groups = config.find({"topk_group"}, 0).value_or(0);
  return experts;
}

std::optional<LatentAttention> latent_of(ModelConfig& config) {
  const auto rank = config.find({"kv_lora_rank"});
  if (!rank) return std::nullopt;
  return LatentAttention{config.find({"q_lora_rank"}).value_or(0), *rank,
                         config.required({"qk_rope_head_dim"}), config.required({"v_head_dim"})};
}

/// Falcon has three variants: one key-value head for all heads, one per head, or a number in
/// between. A null stands for one per head, as does no key in most families.
std::int64_t key_value_heads_of(ModelConfig& config, std::int64_t heads) {
  const Family& family = config.family();
  if (config.flag("multi_query", family.type == "falcon") &&
      !config.flag("new_decoder_architecture", false))
    return 1;
  if (!family.key_value_heads || config.is_null("num_key_value_heads"))
    return config.find({"num_key_value_heads", "num_kv_heads"}).value_or(heads);
  const bool divides = heads % *family.key_value_heads == 0;
  return config.find_or({"num_key_value_heads"}, divides ? family.key_value_heads : std::nullopt);
}

std::int64_t head_size_of(ModelConfig& config, const Transformer& model) {
  if (model.latent) return config.required({"qk_nope_head_dim"});
  if (config.family().head_size && !config.is_null("head_dim"))
    return config.find_or({"head_dim"}, config.family().head_size);
  return config.find({"head_dim"}).value_or(model.hidden / model.heads);
}

void set_attention(Transformer& model, ModelConfig& config) {
  model.heads = config.required({"num_attention_heads", "n_head"});
  model.key_value_heads = key_value_heads_of(config, model.heads);
  model.latent = latent_of(config);
  model.head_size = head_size_of(config, model);
}

/// A file written by hand must give the width of feed-forward layers, if it has any besides
/// experts.
std::int64_t feed_forward_of(ModelConfig& config, const Transformer& model) {
  const std::initializer_list<const char*> keys{"intermediate_size", "n_inner", "ffn_dim",
                                                "ffn_hidden_size"};
  const std::string_view type = config.family().type;
  if (type == "bloom" || type == "falcon" || type == "gpt2")
    return config.find(keys).value_or(4 * model.hidden);
  const bool all_experts = model.experts && model.experts->dense_layers == 0;
  if (all_experts) return config.find(keys).value_or(model.experts->feed_forward);
  return config.find_or(keys, config.family().feed_forward);
}

/// Layers of local attention: those that layer_types calls so; or all but every n-th
/// (sliding_window_pattern; 6 for Gemma 3, 2 for Gemma 2 and gpt-oss); or, where a window is all
/// that is given, every layer.
void set_windows(Transformer& model, ModelConfig& config) {
  const std::string_view type = config.family().type;
  const auto window = config.find({"sliding_window"});
  if (!window || !config.flag("use_sliding_window", !type.starts_with("qwen"))) return;
  model.window = *window;
  model.local_layers = model.layers;
  if (const auto types = config.member("layer_types")) {
    if (types->size() != static_cast<std::size_t>(model.layers))
      types->refuse("has " + counted(types->size(), "entry") + " for " +
                    counted(model.layers, "layer") + "; give one per layer");
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

void set_tables(Transformer& model, ModelConfig& config) {
  const Family& family = config.family();
  model.vocabulary = config.required({"vocab_size"});
  model.tied_embeddings = config.flag("tie_word_embeddings", family.tied);
  model.sequence =
      config.find_or({"max_position_embeddings", "n_positions", "seq_length"}, family.sequence);
  if (family.positions) model.position_table = model.sequence;
}

}  // namespace

ModelFile parse_model(std::string_view text, const std::string& file) {
  const JsonFile parsed(text, file);
  const JsonNode node = parsed.root();
  refuse_own_format(node, "a model's config.json");
  ModelConfig config(node);
  Transformer model;
  model.layers = config.required({"num_hidden_layers", "n_layer"});
  model.hidden = config.required({"hidden_size", "n_embd", "n_embed"});
  set_attention(model, config);
  model.experts = experts_of(config);
  if (model.experts) model.experts->biased = config.family().type == "gpt_oss";
  model.feed_forward = feed_forward_of(config, model);
  model.gated = config.family().gated;
  model.query_key_norms = config.family().query_key_norms;
  model.dropout =
      config.drops({"resid_pdrop", "hidden_dropout", "dropout"}, config.family().dropout);
  set_tables(model, config);
  set_windows(model, config);
  config.expect("word_embed_proj_dim", model.hidden);
  config.expect("moe_layer_freq", 1);
  model.predictions = config.find({"num_nextn_predict_layers"}, 0).value_or(0);
  const std::vector<std::string> faults = find_faults(model);
  if (!faults.empty()) throw Error(file + ": " + faults[0]);
  return {model, config.notes()};
}

ModelFile read_model(const std::string& path) { return parse_model(read_file(path), path); }

}  // namespace bubblescope::traces
