// Every weight is in one GEMM.
#include "sim/model/layer_gemms.h"

namespace bubblescope::inline sim {

PhaseTimes up_projection_times(const ModelOnDevices& on, const LayerTimer& timer) {
  const Transformer& model = on.model;
  const LatentAttention& latent = *model.latent;
  const auto split = [&](std::int64_t width) {
    return timer.per_tensor_rank(static_cast<double>(width));
  };
  const std::int64_t from = latent.query_rank > 0 ? latent.query_rank : model.hidden;
  return timer.gemm(timer.tokens(), static_cast<double>(from),
                    split(model.heads * (model.head_size + latent.rotary_size))) +
         timer.gemm(timer.tokens(), static_cast<double>(latent.key_value_rank),
                    split(model.heads * (model.head_size + latent.value_size)));
}

PhaseTimes attention_gemm_times(const ModelOnDevices& on, const LayerTimer& timer) {
  const Transformer& model = on.model;
  const auto hidden = static_cast<double>(model.hidden);
  const auto split = [&](std::int64_t width) {
    return timer.per_tensor_rank(static_cast<double>(width));
  };
  const double rows = timer.tokens();
  if (!model.latent)
    return timer.gemm(rows, hidden,
                      split(model.head_size * (model.heads + 2 * model.key_value_heads))) +
           timer.gemm(rows, split(model.head_size * model.heads), hidden);
  const LatentAttention& latent = *model.latent;
  const auto query_rank = static_cast<double>(latent.query_rank);
  const PhaseTimes down =
      latent.query_rank > 0 ? timer.gemm(rows, hidden, query_rank) : PhaseTimes{};
  return down + up_projection_times(on, timer) +
         timer.gemm(rows, hidden, static_cast<double>(latent.key_value_rank + latent.rotary_size)) +
         timer.gemm(rows, split(model.heads * latent.value_size), hidden);
}

PhaseTimes network_gemm_times(const ModelOnDevices& on, const LayerTimer& timer, double width) {
  if (width == 0) return {};
  const auto hidden = static_cast<double>(on.model.hidden);
  return timer.gemm(timer.tokens(), hidden, (on.model.gated ? 2 : 1) * width) +
         timer.gemm(timer.tokens(), width, hidden);
}

namespace {

/// The sides of the GEMMs of the routed experts that a rank holds.
struct ExpertSides {
  double local = 0;  ///< experts
  double rows = 0;
  double hidden = 0;
  double width = 0;
};

ExpertSides find_expert_sides(const ModelOnDevices& on, const LayerTimer& timer) {
  const Experts& experts = *on.model.experts;
  const double parts = on.parallel.expert_split();
  const double local = static_cast<double>(experts.count) / on.parallel.expert;
  // Each rank of a tensor group sends a part of the group's tokens to the experts.
  const double rows = timer.per_tensor_rank(timer.tokens() * parts) *
                      static_cast<double>(experts.per_token) / local *
                      on.assumptions.expert_imbalance;
  return {local, rows, static_cast<double>(on.model.hidden),
          static_cast<double>(experts.feed_forward) / parts};
}

/// The routed experts that a rank holds, as grouped GEMMs.
PhaseTimes expert_gemm_times(const ModelOnDevices& on, const LayerTimer& timer) {
  const ExpertSides sides = find_expert_sides(on, timer);
  const double into = (on.model.gated ? 2 : 1) * sides.width;
  const auto both = [&](GemmPass pass) {
    return timer.grouped_gemm(sides.local, {pass, sides.rows, sides.hidden, into}) +
           timer.grouped_gemm(sides.local, {pass, sides.rows, sides.width, sides.hidden});
  };
  return {both(GemmPass::kForward), both(GemmPass::kInputGrad), both(GemmPass::kWeightGrad)};
}

}  // namespace

double expert_output_time(const ModelOnDevices& on, const LayerTimer& timer) {
  const auto [local, rows, hidden, width] = find_expert_sides(on, timer);
  return timer.grouped_gemm(local, {GemmPass::kForward, rows, width, hidden});
}

PhaseTimes layer_gemm_times(const ModelOnDevices& on, const LayerTimer& timer, std::int64_t layer) {
  const PhaseTimes attention = attention_gemm_times(on, timer);
  const auto split = [&](std::int64_t width) {
    return timer.per_tensor_rank(static_cast<double>(width));
  };
  if (!has_experts(on.model, layer))
    return attention + network_gemm_times(on, timer, split(on.model.feed_forward));
  const Experts& experts = *on.model.experts;
  return attention + network_gemm_times(on, timer, split(experts.shared * experts.feed_forward)) +
         timer.gemm16(timer.tokens(), static_cast<double>(on.model.hidden),
                      static_cast<double>(experts.count)) +
         expert_gemm_times(on, timer);
}

}  // namespace bubblescope::inline sim
