// Counts parameters.
#include "sim/model/transformer.h"

#include <algorithm>
#include <utility>

namespace bubblescope::inline sim {

namespace {

std::int64_t latent_parameters(const Transformer& model, const LatentAttention& latent) {
  const std::int64_t query_size = model.head_size + latent.rotary_size;
  const std::int64_t query =
      latent.query_rank > 0
          ? model.hidden * latent.query_rank + latent.query_rank * model.heads * query_size
          : model.hidden * model.heads * query_size;
  const std::int64_t down = model.hidden * (latent.key_value_rank + latent.rotary_size);
  const std::int64_t up =
      latent.key_value_rank * model.heads * (model.head_size + latent.value_size);
  return query + down + up + model.heads * latent.value_size * model.hidden;
}

/// Counts the parameters of QKV and output: 2 h a d + 2 h g d.
std::int64_t attention_parameters(const Transformer& model) {
  if (model.latent) return latent_parameters(model, *model.latent);
  return 2 * model.hidden * model.head_size * (model.heads + model.key_value_heads);
}

std::int64_t network_parameters(const Transformer& model, std::int64_t inner) {
  return (model.gated ? 3 : 2) * model.hidden * inner;
}

}  // namespace

std::int64_t count_expert_layers(const Transformer& model, std::int64_t first, std::int64_t end) {
  if (!model.experts) return 0;
  const Experts& experts = *model.experts;
  const std::int64_t from = std::max(first, experts.dense_layers);
  return end <= from ? 0 : end / experts.every - from / experts.every;
}

bool has_experts(const Transformer& model, std::int64_t layer) {
  return count_expert_layers(model, layer, layer + 1) > 0;
}

LayerParameters count_layer_parameters(const Transformer& model, std::int64_t layer) {
  LayerParameters parameters;
  parameters.attention = attention_parameters(model);
  // With and without a bias.
  parameters.norms = (model.dropout ? 4 : 2) * model.hidden;
  if (!has_experts(model, layer)) {
    parameters.network = network_parameters(model, model.feed_forward);
    return parameters;
  }
  const Experts& experts = *model.experts;
  const std::int64_t one = network_parameters(model, experts.feed_forward);
  // Includes the router.
  parameters.network = experts.shared * one + experts.count * model.hidden;
  parameters.experts = experts.count * one;
  parameters.active_experts = experts.per_token * one;
  return parameters;
}

std::int64_t count_embedding_parameters(const Transformer& model) {
  return (model.vocabulary + model.position_table) * model.hidden;
}

std::int64_t count_head_parameters(const Transformer& model) {
  return model.vocabulary * model.hidden;
}

std::int64_t count_prediction_projection_parameters(const Transformer& model) {
  return 2 * model.hidden * model.hidden;
}

std::int64_t count_prediction_parameters(const Transformer& model) {
  return model.predictions * (count_prediction_projection_parameters(model) + 3 * model.hidden +
                              count_layer_parameters(model, model.layers - 1).total());
}

std::int64_t count_total_parameters(const Transformer& model) {
  std::int64_t total = count_embedding_parameters(model) + model.hidden;
  if (!model.tied_embeddings) total += count_head_parameters(model);
  for (std::int64_t layer = 0; layer < model.layers; ++layer)
    total += count_layer_parameters(model, layer).total();
  return total;
}

double estimate_attended_share(const Transformer& model, std::int64_t sequence, double more) {
  if (model.local_layers == 0) return 1;
  // A window of w of s tokens: w s - w^2 / 2 scores of s^2 / 2.
  const double part =
      std::min(1.0, (static_cast<double>(model.window) + more) / static_cast<double>(sequence));
  const double local = static_cast<double>(model.local_layers) / static_cast<double>(model.layers);
  return 1 - local + local * part * (2 - part);
}

std::vector<std::string> find_faults(const Transformer& model) {
  std::vector<std::string> faults;
  const auto expect = [&](bool sound, std::string fault) {
    if (!sound) faults.push_back(std::move(fault));
  };
  constexpr std::int64_t kMaxSize = std::int64_t{1} << 24;
  for (const std::int64_t size :
       {model.layers, model.hidden, model.heads, model.key_value_heads, model.head_size,
        model.feed_forward, model.vocabulary, model.sequence})
    expect(size >= 1 && size <= kMaxSize, "every size must be between 1 and 2^24");
  expect(model.key_value_heads < 1 || model.heads % model.key_value_heads == 0,
         "the heads must be a multiple of the key-value heads");
  expect(model.predictions >= 0 && model.predictions <= 1024,
         "the multi-token prediction modules must be 0 to 1024");
  if (model.experts) {
    const Experts& experts = *model.experts;
    expect(experts.count >= 1 && experts.count <= 65'536, "the experts must be 1 to 65536");
    expect(experts.per_token >= 1 && experts.per_token <= experts.count,
           "a token visits at least one expert and at most all, not " +
               std::to_string(experts.per_token) + " of " + std::to_string(experts.count));
    expect(experts.every >= 1 && experts.every <= kMaxSize,
           "the step from one layer with experts to the next must be at least 1");
    expect(experts.feed_forward >= 1 && experts.feed_forward <= kMaxSize,
           "an expert needs an inner size");
  }
  return faults;
}

}  // namespace bubblescope::inline sim
