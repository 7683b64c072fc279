// PipeDream-2BW: 1F1B that never flushes, with gradients accumulated over a batch, so that two
// versions of the weights are enough. Narayanan et al., "Memory-Efficient Pipeline-Parallel DNN
// Training", 2021.
#include "schedules/weight_versions.h"
#include "sim/model/schedule_def.h"

namespace bubblescope {
namespace {

/// Updates are one late: W(t+1) = W(t) - learning rate * gradient at W(t-1).
constexpr std::int32_t kDelay = 1;

std::int32_t batch_of(const Shape& shape) { return shape.group_size.value_or(shape.ranks); }

std::vector<std::string> refuse(const ScheduleRequest& request) {
  const Shape& shape = request.shape;
  const std::int32_t batch = batch_of(shape);
  std::vector<std::string> reasons;
  if (batch < shape.ranks)
    reasons.push_back("a batch must fill the pipeline: --microbatch-group-size must be at least " +
                      std::to_string(shape.ranks));
  if (shape.microbatches % batch != 0)
    reasons.push_back("-m must be a multiple of the " + std::to_string(batch) +
                      " micro-batches of an update (--microbatch-group-size, or else --pp)");
  return reasons;
}

Schedule build(const ScheduleRequest& request) {
  Schedule schedule = find_schedule("1f1b").build(request);
  for (const RankOrder& ops : schedule.order)
    schedule.weights.push_back(weights_of(ops, {batch_of(request.shape), kDelay}));
  return schedule;
}

const ScheduleRegistrar registrar{{
    .name = "pipedream-2bw",
    .summary = "1F1B without flushes, an update per batch: two versions of the weights",
    .source = "Narayanan et al. 2021",
    .implied_chunks = 1,
    .groups_microbatches = true,
    .refuse = refuse,
    .build = build,
    .claims = [](const ScheduleRequest& request) { return find_schedule("1f1b").claims(request); },
}};

}  // namespace
}  // namespace bubblescope
