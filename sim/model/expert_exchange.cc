// Bytes over the links inside a node and over the NICs; the slower of both counts.
#include "sim/model/expert_exchange.h"

#include <algorithm>
#include <cmath>

namespace bubblescope::inline sim {

namespace {

/// All-to-alls inside a node reach 0.60 of the stated rate (B200, and A100 over PCI Express:
/// SimuMax's measured networks), messages between two devices 0.836. DeepEP's Hybrid-EP, called
/// from PyTorch, has 485 and 465 of a GB200's 900 GB/s over 32 ranks, 0.53
/// (docs/README_Hybrid-EP.md).
constexpr double kExchangeShare = 0.60 / 0.836;

}  // namespace

double estimate_distinct(double places, std::int64_t draws) {
  return places * (1 - std::pow(1 - 1 / places, static_cast<double>(draws)));
}

double estimate_ranks_per_token(const Dispatch& dispatch, double ranks) {
  return dispatch.ranks > 0 ? std::min(dispatch.ranks, ranks)
                            : estimate_distinct(ranks, dispatch.copies);
}

Nanos estimate_exchange_time(const Gpu& gpu, const Dispatch& dispatch, std::int32_t ranks,
                             std::int32_t stride) {
  const std::int32_t members = std::clamp(gpu.per_node / stride, 1, ranks);
  const auto all = static_cast<double>(ranks);
  const double visited_ranks = estimate_ranks_per_token(dispatch, all);
  const double copies = dispatch.once ? visited_ranks : static_cast<double>(dispatch.copies);
  const double bytes = dispatch.bytes_per_copy * copies;
  const Link near = gpu.between_devices();
  const Link within{near.latency, gpu.links(members) * kExchangeShare * near.bytes_per_second};
  if (members == ranks) return estimate_all_to_all_time(bytes, ranks, within);
  if (!dispatch.once)
    return std::max(members > 1 ? within.time(bytes * (members - 1) / all) : 0,
                    gpu.outside.time(bytes * (all - members) / all));
  const double nodes = std::ceil(all / members);
  double visited = std::min(estimate_distinct(nodes, dispatch.copies), visited_ranks);
  if (dispatch.max_nodes > 0) visited = std::min(visited, static_cast<double>(dispatch.max_nodes));
  const double outside = dispatch.bytes_per_copy * visited * (nodes - 1) / nodes;
  // Kernels also copy what the NIC received for its own rank (internode.cu: forwarders).
  const double inside = bytes * (all - 1) / all;
  return std::max(members > 1 ? within.time(inside) : 0, gpu.outside.time(outside));
}

bool dispatches_once(const ModelOnDevices& on) {
  const CostAssumptions& assumed = on.assumptions;
  const bool limits_nodes = on.model.experts->max_groups > 0 && !assumed.dispatch_chosen;
  return assumed.dispatch_once > 0 || limits_nodes;
}

Dispatch dispatch_of(const ModelOnDevices& on, double bytes_per_copy) {
  const Experts& experts = *on.model.experts;
  return {bytes_per_copy, experts.per_token, experts.max_groups, dispatches_once(on),
          on.assumptions.ranks_per_token};
}

double count_permuted(const ModelOnDevices& on) {
  const auto copies = static_cast<double>(on.model.experts->per_token);
  const auto hidden = static_cast<double>(on.model.hidden);
  const Dispatch dispatch = dispatch_of(on, 0);
  if (on.parallel.expert > 1 && dispatch.once)
    return 2 * (copies + estimate_ranks_per_token(dispatch, on.parallel.expert)) * hidden;
  // Read once and written per copy, and the reverse; by expert, every copy both ways.
  const double by_expert = on.parallel.expert > 1 ? 4 * copies : 0;
  return (2 * (1 + copies) + by_expert) * hidden;
}

}  // namespace bubblescope::inline sim
