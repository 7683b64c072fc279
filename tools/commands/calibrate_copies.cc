// Derives the costs of copies from measured evictions.
#include "tools/commands/calibrate_copies.h"

#include <algorithm>
#include <utility>

#include "exec/calibration/copies_program.h"
#include "exec/gpu/host/device_backend.h"
#include "sim/ir/recompute.h"

namespace bubblescope::tools {

namespace {

/// The slowdown of each eviction and load by the number of busy ranks. The first entry is the time
/// without contention.
Slowdown find_slowdown(const std::vector<exec::CopyCosts>& stages) {
  std::vector<double> sums;
  std::vector<double> alone;
  for (const exec::CopyCosts& stage : stages)
    for (const auto* const seen : {&stage.evict, &stage.load}) {
      if (seen->empty() || !seen->front()) continue;
      sums.resize(std::max(sums.size(), seen->size()), 0);
      alone.resize(sums.size(), 0);
      for (std::size_t busy = 1; busy < seen->size(); ++busy)
        if ((*seen)[busy]) {
          sums[busy] += static_cast<double>((*seen)[busy]->mean);
          alone[busy] += static_cast<double>(seen->front()->mean);
        }
    }
  Slowdown slowdown;
  for (std::size_t busy = 1; busy < sums.size(); ++busy) {
    const double before = slowdown.empty() ? 1 : slowdown.back();
    slowdown.push_back(alone[busy] > 0 ? std::max(1.0, sums[busy] / alone[busy]) : before);
  }
  return slowdown;
}

/// Returns the time per additional byte, in nanoseconds, between the two largest sizes.
double nanos_per_byte(const std::vector<exec::MessageTime>& by_size) {
  if (by_size.size() < 2) return 0;
  const exec::MessageTime& largest = by_size[by_size.size() - 1];
  const exec::MessageTime& less = by_size[by_size.size() - 2];
  return static_cast<double>(largest.nanos - less.nanos) /
         static_cast<double>(largest.bytes - less.bytes);
}

/// Offloads the activations of every stage, to the host or to the opposite rank of the pipeline.
ValidSchedule with_offload_targets(Schedule schedule, bool by_host) {
  schedule.offload_target_of_rank.clear();
  for (std::int32_t rank = 0; rank < schedule.shape.ranks; ++rank)
    schedule.offload_target_of_rank.push_back(by_host ? rank : schedule.shape.ranks - 1 - rank);
  return require_valid(std::move(schedule));
}

CopyEvidence measure_copies(const ValidSchedule& moved, const Measurement& measured,
                            const MemoryModel& memory, const RunContext& context) {
  const bool by_host = !offloads_to_rank(moved, 0);
  const Program program = exec::copies_program(moved, measured.ranks_per_device);
  const std::vector<Timeline> steps = time_program(moved, program, context).steps;
  CopyEvidence evidence;
  evidence.stages =
      exec::find_copy_costs({program, steps}, {moved->stages(), measured.ranks_per_device});
  for (std::int32_t stage = 0; stage < moved->stages(); ++stage) {
    const auto at = static_cast<std::size_t>(stage);
    evidence.kept.push_back(recomputes(moved, stage) ? memory.checkpoint_bytes[at]
                                                     : memory.activation_bytes[at].forward);
    const std::int32_t rank = moved->rank_of_stage[at];
    if (!by_host && !offloads_to_rank(moved, rank)) evidence.stages[at] = {};  // the middle rank
  }
  const exec::DeviceBackendDef& backend = *exec::find_device_backend(context.run.backend);
  const auto& time = by_host ? backend.time_host_copies : backend.time_messages;
  evidence.by_size = time(moved->shape.ranks, context.run.device);
  return evidence;
}

/// Sets the copy times of each stage without contention.
void set_copy_times(std::vector<StageEntry>& stages, const CopyEvidence& evidence, bool by_host) {
  for (std::size_t stage = 0; stage < evidence.stages.size(); ++stage) {
    const exec::CopyCosts& seen = evidence.stages[stage];
    StageEntry& entry = stages[stage];
    if (!seen.evict.empty() && seen.evict.front())
      (by_host ? entry.evict : entry.evict_to_rank) = seen.evict.front()->mean;
    if (!seen.load.empty() && seen.load.front())
      (by_host ? entry.load : entry.load_from_rank) = seen.load.front()->mean;
  }
}

bool can_move(const Schedule& schedule, const RunContext& context) {
  const exec::DeviceBackendDef* const backend = exec::find_device_backend(context.run.backend);
  return backend != nullptr && backend->time_host_copies &&
         context.run.work == WorkKind::kTransformer && !schedule.forward_only &&
         schedule.shape.slices == 1 && schedule.weights.empty();
}

}  // namespace

CopyEntry estimate_copy(const CopyEvidence& evidence) {
  const double per_byte = std::max(0.0, nanos_per_byte(evidence.by_size));
  double beyond = 0;
  std::int64_t copies = 0;
  for (std::size_t stage = 0; stage < evidence.stages.size(); ++stage)
    for (const auto* const seen : {&evidence.stages[stage].evict, &evidence.stages[stage].load})
      if (!seen->empty() && seen->front()) {
        beyond += static_cast<double>(seen->front()->mean) -
                  per_byte * static_cast<double>(evidence.kept[stage]);
        ++copies;
      }
  const double latency = copies > 0 ? std::max(0.0, beyond / static_cast<double>(copies)) : 0;
  CopyEntry copy{static_cast<Nanos>(latency), {}, find_slowdown(evidence.stages)};
  if (per_byte > 0) copy.bandwidth_gbps = 8 / per_byte;
  return copy;
}

CostTable with_copies(CostTable costs, const Measurement& measured, const MemoryModel& memory,
                      const RunContext& context) {
  const Schedule& schedule = measured.step.schedule;
  if (!can_move(schedule, context)) return costs;
  for (const bool by_host : {true, false}) {
    if (!by_host && schedule.shape.ranks == 1) break;
    const CopyEvidence evidence =
        measure_copies(with_offload_targets(schedule, by_host), measured, memory, context);
    set_copy_times(costs.stages, evidence, by_host);
    if (by_host)
      costs.copy = estimate_copy(evidence);
    else
      costs.copy_to_rank = estimate_copy(evidence);
  }
  return costs;
}

}  // namespace bubblescope::tools
