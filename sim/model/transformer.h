// Transformers: what a model's layers are, and how much is in them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/ir/registry.h"

namespace bubblescope {

/// Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1): queries, keys and
/// values are projected down to small ranks and up again.
struct LatentAttention {
  std::int64_t query_rank = 0;
  std::int64_t key_value_rank = 0;
  std::int64_t rotary_size = 0;  ///< per head, of the part that carries the position
  std::int64_t value_size = 0;   ///< per head
};

/// Every token is sent to a few of many small feed-forward networks.
struct Experts {
  std::int64_t count = 0;
  std::int64_t per_token = 0;
  std::int64_t shared = 0;        ///< that every token visits
  std::int64_t feed_forward = 0;  ///< inner size of one expert
  std::int64_t dense_layers = 0;  ///< the first layers, which have a plain network instead
};

struct Transformer {
  std::int64_t layers = 1;
  std::int64_t hidden = 1;
  std::int64_t heads = 1;
  std::int64_t key_value_heads = 1;  ///< fewer than heads: grouped queries
  std::int64_t head_size = 1;
  std::int64_t feed_forward = 1;  ///< inner size of the dense network
  bool gated = false;             ///< SwiGLU: three matrices instead of two
  bool dropout = false;           ///< keeps its masks for the backward (GPT style)
  std::int64_t vocabulary = 1;
  bool tied_embeddings = false;
  std::int64_t sequence = 2048;     ///< tokens, unless --seq-length says
  std::int64_t position_table = 0;  ///< learned positions
  /// Multi-token prediction modules (arXiv 2412.19437, section 2.2): each a projection of two
  /// hidden states to one, a layer like the last, and the main model's embedding and head.
  std::int64_t predictions = 0;
  std::optional<LatentAttention> latent;
  std::optional<Experts> experts;
};

/// Weights of the parts of a model, in parameters.
struct LayerParameters {
  std::int64_t attention = 0;
  std::int64_t network = 0;         ///< the dense network, or the shared experts and the router
  std::int64_t experts = 0;         ///< all routed experts
  std::int64_t active_experts = 0;  ///< those that one token visits
  std::int64_t norms = 0;

  std::int64_t total() const { return attention + network + experts + norms; }
  /// In the matrix products of one token.
  std::int64_t active() const { return attention + network + active_experts; }
};

/// Of layer 0..layers-1.
LayerParameters parameters_of_layer(const Transformer& model, std::int64_t layer);

/// Of the token (and position) table on the first stage.
std::int64_t embedding_parameters(const Transformer& model);
/// Of the output projection on the last stage; a tied one is a copy of the token table there.
std::int64_t head_parameters(const Transformer& model);
/// Of one multi-token prediction module's projection.
std::int64_t prediction_projection_parameters(const Transformer& model);
/// Of the main model: without multi-token prediction. A tied head counts once.
std::int64_t total_parameters(const Transformer& model);
/// Of all multi-token prediction modules, without the embedding and the head that they share.
std::int64_t prediction_parameters(const Transformer& model);

/// What is wrong with a description, with the remedy; empty: nothing.
std::vector<std::string> faults_of(const Transformer& model);

/// A known model, registered by one of the files in presets/.
struct ModelDef {
  std::string name;
  std::vector<std::string> aliases = {};
  std::string summary;
  std::string source;  ///< where the numbers stand
  Transformer model;
};

using ModelRegistrar = Registrar<ModelDef>;

}  // namespace bubblescope
