// Counted by kernel, as Megatron-LM fuses them (arXiv 2205.05198).
#include "sim/model/moved_numbers.h"

namespace bubblescope::inline sim {

double inner_width(const Transformer& model, std::int64_t layer) {
  if (!has_experts(model, layer)) return static_cast<double>(model.feed_forward);
  return static_cast<double>((model.experts->per_token + model.experts->shared) *
                             model.experts->feed_forward);
}

double unfused_width(const ModelOnDevices& on, std::int64_t layer) {
  const double all = inner_width(on.model, layer);
  if (!has_experts(on.model, layer)) return all;
  const Experts& experts = *on.model.experts;
  return all - on.assumptions.experts_fused *
                   static_cast<double>(experts.per_token * experts.feed_forward);
}

HeadWidths widths_of(const Transformer& model) {
  const std::int64_t rotary = model.latent ? model.latent->rotary_size : 0;
  const std::int64_t queries = model.heads * (model.head_size + rotary);
  const std::int64_t keys = model.latent ? queries : model.key_value_heads * model.head_size;
  return {static_cast<double>(queries), static_cast<double>(keys),
          static_cast<double>(queries + 2 * keys)};
}

CastNumbers cast_numbers(const Transformer& model, std::int64_t layer, double inner) {
  const auto hidden = static_cast<double>(model.hidden);
  const HeadWidths heads = widths_of(model);
  const double copies = has_experts(model, layer)
                            ? static_cast<double>(model.experts->per_token + model.experts->shared)
                            : 1;
  return {{(1 + copies) * hidden, heads.queries + inner},
          {(1 + copies) * hidden, heads.all + (model.gated ? 2 : 1) * inner}};
}

namespace {

/// The numbers that norms of queries and keys move, if they move each so often: read and written in
/// F; read, with their gradients, and written in I.
double normalized_width(const Transformer& model, const HeadWidths& heads, double moves) {
  return model.query_key_norms ? moves * (heads.queries + heads.keys) : 0;
}

}  // namespace

MovedNumbers moved_forward(const Transformer& model, double inner) {
  const auto hidden = static_cast<double>(model.hidden);
  const HeadWidths heads = widths_of(model);
  const double around = (model.dropout ? 11 : 10) * hidden;
  const double norms = normalized_width(model, heads, 2);
  if (model.gated)
    return {around, 2 * (heads.queries + heads.keys) + 2 * heads.queries + norms + 3 * inner};
  return {around, 4 * heads.all + 2 * heads.queries + norms + 4 * inner};
}

MovedNumbers moved_backward(const Transformer& model, double inner) {
  const auto hidden = static_cast<double>(model.hidden);
  const HeadWidths heads = widths_of(model);
  const double around = (model.dropout ? 17 : 12) * hidden;
  const double together = 2 * heads.all + 2 * heads.queries + normalized_width(model, heads, 3);
  if (model.gated) return {around, together + 2 * (heads.queries + heads.keys) + 5 * inner};
  return {around, together + heads.all + 4 * inner};
}

MovedNumbers moved_eagerly_forward(const Transformer& model, double inner) {
  if (!model.gated) return {};
  const HeadWidths heads = widths_of(model);
  return {0, 8 * (heads.queries + heads.keys) + 2 * inner};
}

MovedNumbers moved_eagerly_backward(const Transformer& model, double inner) {
  if (!model.gated) return {};
  const HeadWidths heads = widths_of(model);
  return {0, 8 * (heads.queries + heads.keys) + 4 * inner};
}

MovedNumbers moved_by_norms(const Transformer& model) {
  return {4 * static_cast<double>(model.hidden), 0};
}

MovedNumbers moved_by_activation(const Transformer& model, double inner) {
  return {0, (model.gated ? 3 : 2) * inner};
}

}  // namespace bubblescope::inline sim
