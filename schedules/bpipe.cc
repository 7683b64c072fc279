// BPipe: 1F1B whose early ranks store part of their activations in the memory of late ones, so that
// all ranks need about the same. Kim et al., "BPipe: Memory-Balanced Pipeline Parallelism for
// Training Large Language Models", 2023.
#include <algorithm>
#include <iterator>
#include <set>

#include "sim/model/schedule_def.h"

namespace bubblescope::schedules {
namespace {

const ScheduleDef& one_f_one_b() { return find_schedule("1f1b"); }

/// ceil((p+2)/2): half of the p + 1 micro-batches that a pair of ranks holds together, rounded up,
/// plus one in transit between them.
std::size_t limit_of(std::int32_t ranks) { return static_cast<std::size_t>((ranks + 3) / 2); }

/// Adds copies to a rank's order so that it stays within a memory limit. When the limit is reached,
/// the newest micro-batch is evicted, because it is needed last; it is loaded back one op before
/// its backward begins.
class Eviction {
 public:
  explicit Eviction(std::size_t limit) : limit_(limit) {}

  RankOrder run(const RankOrder& ops) && {
    for (std::size_t at = 0; at < ops.size(); ++at) {
      load_for(ops[at]);
      if (at + 1 < ops.size()) load_for(ops[at + 1]);
      const Op& op = ops[at];
      if (op.kind == OpKind::kForward) {
        free_memory(op.stage);
        held_.insert(op.microbatch);
      } else {
        held_.erase(op.microbatch);
        loaded_.erase(op.microbatch);
      }
      result_.push_back(op);
    }
    return std::move(result_);
  }

 private:
  void load_for(const Op& op) {
    if (op.kind != OpKind::kBackward || evicted_.erase(op.microbatch) == 0) return;
    free_memory(op.stage);
    held_.insert(op.microbatch);
    loaded_.insert(op.microbatch);
    result_.push_back({op.stage, op.microbatch, 0, OpKind::kLoad});
  }

  void free_memory(std::int32_t stage) {
    if (held_.size() < limit_) return;
    auto newest = std::prev(held_.end());
    while (loaded_.contains(*newest)) --newest;
    result_.push_back({stage, *newest, 0, OpKind::kEvict});
    evicted_.insert(*newest);
    held_.erase(newest);
  }

  std::size_t limit_;
  std::set<std::int32_t> held_;     ///< in the rank's own memory
  std::set<std::int32_t> loaded_;   ///< those loaded back for their backward
  std::set<std::int32_t> evicted_;  ///< in the partner rank's memory
  RankOrder result_;
};

Schedule build_bpipe(const ScheduleRequest& request) {
  const std::int32_t ranks = request.shape.ranks;
  Schedule schedule = one_f_one_b().build(request);
  schedule.offload_target_of_rank = host_offload_targets(ranks);
  for (std::int32_t rank = 0; rank < ranks / 2; ++rank) {
    schedule.offload_target_of_rank[rank] = ranks - 1 - rank;
    schedule.order[rank] = Eviction(limit_of(ranks)).run(schedule.order[rank]);
  }
  return schedule;
}

/// 1F1B's times, if copies are no longer than a forward and so hide beside the adjacent ops.
Claims claim_bpipe(const ScheduleRequest& request) {
  Claims claims;
  const UniformCost& cost = request.cost;
  if (cost.copy <= std::min(cost.forward, cost.full_backward()))
    claims = one_f_one_b().claims(request);
  // Peaks include other ranks' activations, which a rank's own order does not show; tests cover
  // them.
  claims.peak_chunks.clear();
  return claims;
}

const ScheduleRegistrar bpipe_registrar{[] {
  return ScheduleDef{
      .name = "bpipe",
      .aliases = {"BPipe"},
      .summary =
          "1F1B; early ranks offload activations to late ones: at most ceil((p+2)/2) on any rank",
      .source = "Kim et al. 2023",
      .implied_chunks = 1,
      .build = build_bpipe,
      .claims = claim_bpipe,
  };
}};

}  // namespace
}  // namespace bubblescope::schedules
