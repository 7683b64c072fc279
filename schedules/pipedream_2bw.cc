// PipeDream-2BW: 1F1B without flushes, with gradients accumulated over a batch, so that two
// versions of the weights suffice. Narayanan et al., "Memory-Efficient Pipeline-Parallel DNN
// Training", 2021.
#include <algorithm>

#include "schedules/round_robin.h"
#include "schedules/weight_versions.h"
#include "sim/ir/counted.h"

namespace bubblescope::schedules {
namespace {

/// Updates are one late: W(t+1) = W(t) - learning rate * gradient at W(t-1).
constexpr std::int32_t kDelay = 1;

/// Returns the micro-batches per update, over all replicas; by default just enough to fill every
/// pipeline.
std::int32_t batch_of(const Shape& shape) { return shape.group_size.value_or(shape.ranks); }

std::vector<std::string> refuse_pipedream_2bw(const ScheduleRequest& request) {
  const Shape& shape = request.shape;
  const std::int32_t batch = batch_of(shape);
  std::vector<std::string> reasons = refuse_round_robin(request);
  const std::vector<std::int32_t> replicas = replicas_of(request);
  if (std::count(replicas.begin(), replicas.end(), replicas.front()) !=
      static_cast<std::ptrdiff_t>(replicas.size()))
    reasons.push_back("the whole pipeline is replicated; give every stage the same `replicas`");
  else if (batch % std::max(replicas.front(), 1) != 0)
    reasons.push_back("an update takes " + counted(batch, "micro-batch") +
                      ", which its replicas cannot share evenly; give a multiple of " +
                      std::to_string(replicas.front()) + " as `microbatch_group_size`");
  if (batch < shape.ranks)
    reasons.push_back("a batch must fill the pipeline: `microbatch_group_size` must be at least " +
                      std::to_string(shape.ranks));
  if (shape.microbatches % std::max(batch, 1) != 0)
    reasons.push_back("`microbatches` must be a multiple of the " + counted(batch, "micro-batch") +
                      " of an update (`microbatch_group_size`, or else `pp`)");
  return reasons;
}

Schedule build_pipedream_2bw(const ScheduleRequest& request) {
  Schedule schedule = build_round_robin(request);
  for (const RankOrder& ops : schedule.order)
    schedule.weights.push_back(assign_weight_versions(ops, {batch_of(request.shape), kDelay}));
  return schedule;
}

const ScheduleRegistrar pipedream_2bw_registrar{[] {
  return ScheduleDef{
      .name = "pipedream-2bw",
      .summary = "1F1B without flushes, an update per batch: two versions of the weights",
      .source = "Narayanan et al. 2021",
      .implied_chunks = 1,
      .groups_microbatches = true,
      .replicates_stages = true,
      .flushes = false,
      .refuse = refuse_pipedream_2bw,
      .build = build_pipedream_2bw,
      .claims = claim_round_robin,
  };
}};

}  // namespace
}  // namespace bubblescope::schedules
