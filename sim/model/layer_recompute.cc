// Whole layers, the choice of a runtime, or modules by name.
#include "sim/model/layer_recompute.h"

#include "sim/model/layer_gemms.h"
#include "sim/model/layer_timer.h"
#include "sim/model/moved_numbers.h"

namespace bubblescope::inline sim {

namespace {

/// The time that full recomputation leaves out. PyTorch's checkpoints stop where the last tensor
/// that the backward needs is there again (torch.utils.checkpoint, set_checkpoint_early_stop):
/// before the network's last GEMM, the collective after it and the residual. Of routed experts
/// these are the grouped GEMM, the combination and half of the permutation, unless their outputs
/// are needed to weigh them.
double not_recomputed_time(const ModelOnDevices& on, const LayerTimer& timer, std::int64_t layer) {
  if (!on.parallel.pytorch) return 0;
  const auto hidden = static_cast<double>(on.model.hidden);
  const double residual = timer.elementwise({3 * hidden, 0});
  if (has_experts(on.model, layer))
    return on.assumptions.weighed_early *
           (expert_output_time(on, timer) + residual + timer.permutation() / 2 +
            timer.expert_collectives() / 2);
  const auto inner = static_cast<double>(on.model.feed_forward);
  if (inner == 0) return 0;
  const double scatter = (timer.tensor_collectives(true) - timer.tensor_collectives(false)) / 2;
  return timer.gemm(timer.tokens(), timer.per_tensor_rank(inner), hidden).forward + scatter +
         residual;
}

double core_time(const ModelOnDevices& on, const LayerTimer& timer) {
  return timer.core_forward() + timer.scores(score_bytes_forward(on.model));
}

double shared_experts_time(const ModelOnDevices& on, const LayerTimer& timer) {
  const Experts& experts = *on.model.experts;
  const auto inner = static_cast<double>(experts.shared * experts.feed_forward);
  return network_gemm_times(on, timer, timer.per_tensor_rank(inner)).forward +
         timer.elementwise(moved_by_activation(on.model, inner));
}

/// The network of a layer, or its experts with router, dispatch and combine: what is left of F
/// without attention, the norm and the residual in front of it, and what attention waits for.
double network_time(const ModelOnDevices& on, const LayerTimer& timer, double forward) {
  const double norm = timer.elementwise({moved_forward(on.model, 0).around / 2, 0});
  return forward - estimate_attention_times(on).forward - norm - timer.tensor_collectives(false) -
         timer.context_forward();
}

double modules_time(const ModelOnDevices& on, std::int64_t layer, double forward) {
  const LayerTimer timer(on);
  const bool experts = has_experts(on.model, layer);
  double time = 0;
  const auto add = [&](RecomputeModule module, bool has_module, const auto& again) {
    if (has_module && on.parallel.modules.has(module)) time += again();
  };
  const bool whole_network = on.parallel.modules.has(RecomputeModule::kExperts);
  add(RecomputeModule::kCoreAttention, true, [&] { return core_time(on, timer); });
  add(RecomputeModule::kLayerNorm, true,
      [&] { return timer.elementwise(moved_by_norms(on.model)); });
  add(RecomputeModule::kUpProjection, on.model.latent.has_value(),
      [&] { return up_projection_times(on, timer).forward; });
  add(RecomputeModule::kNetwork, !experts, [&] { return network_time(on, timer, forward); });
  add(RecomputeModule::kExperts, experts, [&] { return network_time(on, timer, forward); });
  if (!experts || whole_network) return time;
  const Experts& routed = *on.model.experts;
  add(RecomputeModule::kExpertActivation, true, [&] {
    return timer.elementwise(
        moved_by_activation(on.model, static_cast<double>(routed.per_token * routed.feed_forward)));
  });
  add(RecomputeModule::kSharedExperts, routed.shared > 0,
      [&] { return shared_experts_time(on, timer); });
  return time;
}

}  // namespace

double estimate_recompute_time(const ModelOnDevices& on, std::int64_t layer, double forward) {
  if (on.parallel.recompute == Recompute::kNone) return 0;
  const LayerTimer timer(on);
  if (on.parallel.recompute == Recompute::kFull)
    return forward - not_recomputed_time(on, timer, layer);
  if (!on.parallel.modules.empty()) return modules_time(on, layer, forward);
  if (on.parallel.pytorch)
    return layer_gemm_times(on, timer, layer).forward / 2 +
           timer.elementwise(moved_forward(on.model, inner_width(on.model, layer))) +
           timer.eager(moved_eagerly_forward(on.model, inner_width(on.model, layer)));
  if (on.model.latent && on.parallel.flash_attention) return up_projection_times(on, timer).forward;
  return core_time(on, timer);
}

ModelOnDevices without_recomputation(ModelOnDevices on) {
  on.parallel.recompute = Recompute::kNone;
  return on;
}

}  // namespace bubblescope::inline sim
