// Transformers: the sizes and parameter counts of a model's layers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/ir/registry.h"

namespace bubblescope::inline sim {

/// Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1): queries, keys and
/// values are projected down to small ranks and up again.
struct LatentAttention {
  std::int64_t query_rank = 0;
  std::int64_t key_value_rank = 0;
  std::int64_t rotary_size = 0;  ///< per head, of the part that carries the position
  std::int64_t value_size = 0;   ///< per head
};

/// Mixture of experts: every token is sent to a few of many small feed-forward networks.
struct Experts {
  std::int64_t count = 0;
  std::int64_t per_token = 0;
  std::int64_t shared = 0;        ///< experts that every token visits
  std::int64_t feed_forward = 0;  ///< inner size of one expert
  std::int64_t dense_layers = 0;  ///< the first layers, which have a dense network instead
  /// The maximum number of groups, each on a node of its own, with a token's experts; 0: any.
  std::int64_t max_groups = 0;
  std::int64_t every = 1;  ///< every how many of the other layers, counted from 1, one has experts
  bool biased = false;     ///< each expert adds a bias to its output (gpt-oss)
};

struct Transformer {
  std::int64_t layers = 1;
  std::int64_t hidden = 1;
  std::int64_t heads = 1;
  std::int64_t key_value_heads = 1;  ///< fewer than heads: grouped queries
  std::int64_t head_size = 1;
  std::int64_t feed_forward = 1;  ///< inner size of the dense network
  bool gated = false;             ///< SwiGLU: three matrices instead of two
  bool dropout = false;           ///< saves dropout masks for the backward (GPT style)
  bool query_key_norms = false;   ///< queries and keys have norms of their own (Qwen 3)
  std::int64_t vocabulary = 1;
  bool tied_embeddings = false;
  std::int64_t sequence = 2048;     ///< tokens, by default
  std::int64_t position_table = 0;  ///< learned positions
  /// Multi-token prediction modules (arXiv 2412.19437, section 2.2): each has a projection of two
  /// hidden states to one, a layer like the last, and the main model's embedding and head.
  std::int64_t predictions = 0;
  /// The number of layers in which a token attends to the last `window` tokens alone; they are
  /// spread evenly. 0: every layer attends to the whole sequence.
  std::int64_t local_layers = 0;
  std::int64_t window = 0;
  std::optional<LatentAttention> latent = {};
  std::optional<Experts> experts = {};
};

/// Parameter counts of one layer, by part.
struct LayerParameters {
  std::int64_t attention = 0;
  std::int64_t network = 0;         ///< the dense network, or the shared experts and the router
  std::int64_t experts = 0;         ///< all routed experts
  std::int64_t active_experts = 0;  ///< those that one token visits
  std::int64_t norms = 0;

  std::int64_t total() const { return attention + network + experts + norms; }
  /// Returns the number of parameters in the GEMMs of one token.
  std::int64_t active() const { return attention + network + active_experts; }
};

/// Whether layer 0..layers-1 has routed experts; its number, counted from 1, decides.
bool has_experts(const Transformer& model, std::int64_t layer);
/// How many layers from `first` to before `end` have them.
std::int64_t count_expert_layers(const Transformer& model, std::int64_t first, std::int64_t end);

/// Counts for layer 0..layers-1.
LayerParameters count_layer_parameters(const Transformer& model, std::int64_t layer);

/// Counts the token table (and the position table) on the first stage.
std::int64_t count_embedding_parameters(const Transformer& model);
/// The output projection on the last stage; a tied one is a copy of the token table there.
std::int64_t count_head_parameters(const Transformer& model);
/// Counts the projection of one multi-token prediction module.
std::int64_t count_prediction_projection_parameters(const Transformer& model);
/// The main model, without multi-token prediction. A tied head counts once.
std::int64_t count_total_parameters(const Transformer& model);
/// Counts all multi-token prediction modules, without the shared embedding and head.
std::int64_t count_prediction_parameters(const Transformer& model);

/// The mean over layers of the scores that causal attention computes, over those of whole
/// sequences, if a local layer computes `more` tokens beside its window.
double estimate_attended_share(const Transformer& model, std::int64_t sequence, double more = 0);

/// Returns the problems of a description, each with the remedy; empty if there are none.
std::vector<std::string> find_faults(const Transformer& model);

/// A known model, registered by one of the files in presets/.
struct ModelDef {
  std::string name;
  std::vector<std::string> aliases = {};
  std::string summary;
  std::string source;  ///< where the numbers come from
  Transformer model;
};

using ModelRegistrar = Registrar<ModelDef>;

}  // namespace bubblescope::inline sim
