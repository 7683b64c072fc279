// Finds steady states and counts weight versions.
#include "sim/analysis/asynchronous.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "sim/analysis/memory_sum.h"

namespace bubblescope::inline sim {

namespace {

/// When micro-batches pass the first stage.
struct FirstStage {
  std::vector<Nanos> leaves;  ///< per micro-batch: the start of its last op
  std::vector<Nanos> left;    ///< per micro-batch: the end of its last op
  Nanos entered = 0;          ///< the latest end of a forward
};

FirstStage observe_first_stage(const Schedule& schedule, const Program& program,
                               const Timeline& timeline) {
  const std::vector<Nanos> none(static_cast<std::size_t>(schedule.shape.microbatches), 0);
  FirstStage first{none, none, 0};
  for (InstructionId id = 0; id < program.size(); ++id) {
    const Instruction& instruction = program.instructions[id];
    const Op& op = instruction.op;
    if (!is_compute(op.kind) || !schedule.is_first(op.stage)) continue;
    first.leaves[op.microbatch] = std::max(first.leaves[op.microbatch], timeline.start[id]);
    first.left[op.microbatch] = std::max(first.left[op.microbatch], timeline.end[id]);
    if (op.kind == OpKind::kForward) first.entered = std::max(first.entered, timeline.end[id]);
  }
  return first;
}

/// The maximum number of versions held at once after any op: the newest, and those still to be
/// read.
std::int32_t max_versions(const std::vector<WeightUse>& uses) {
  std::map<std::int32_t, std::size_t> last_read;
  for (std::size_t at = 0; at < uses.size(); ++at) last_read[uses[at].read] = at;
  std::set<std::int32_t> held{0};
  std::int32_t newest = 0;
  std::size_t highest = 1;
  for (std::size_t at = 0; at < uses.size(); ++at) {
    const std::int32_t before = std::exchange(newest, uses[at].written.value_or(newest));
    held.insert(newest);
    for (const std::int32_t version : {before, uses[at].read})
      if (version != newest && (!last_read.contains(version) || last_read[version] <= at))
        held.erase(version);
    highest = std::max(highest, held.size());
  }
  return static_cast<std::int32_t>(highest);
}

WeightReport account_for_rank(const RankOrder& ops, const std::vector<WeightUse>& uses) {
  WeightReport report;
  const auto first_backward = std::find_if(
      ops.begin(), ops.end(), [](const Op& op) { return op.kind == OpKind::kBackward; });
  const auto forwards = std::count_if(ops.begin(), first_backward,
                                      [](const Op& op) { return op.kind == OpKind::kForward; });
  report.warmup = std::max(0, static_cast<std::int32_t>(forwards) - 1);
  for (std::size_t at = 0; at < ops.size(); ++at) {
    if (uses[at].written)
      report.staleness = std::max(report.staleness, *uses[at].written - 1 - uses[at].read);
  }
  report.versions = max_versions(uses);
  return report;
}

/// The number of micro-batches after which a pipeline repeats itself: all replicas have had their
/// turns, and an update has been made.
std::int32_t round_of(const Schedule& schedule) {
  std::int32_t updates = 1;
  for (const std::vector<WeightUse>& uses : schedule.weights)
    for (const WeightUse& use : uses) updates = std::max(updates, use.written.value_or(0));
  std::int32_t round = std::max(1, schedule.shape.microbatches / updates);
  for (const std::int32_t replicas : schedule.replicas_of_stage) round = std::lcm(round, replicas);
  return round;
}

}  // namespace

std::optional<Nanos> find_period(const ValidSchedule& schedule, const Program& program,
                                 const Timeline& timeline) {
  if (schedule->weights.empty()) return {};
  const FirstStage first = observe_first_stage(schedule, program, timeline);
  const std::int32_t round = round_of(schedule);
  std::int32_t last = schedule->shape.microbatches - 1;
  while (last > 0 && first.leaves[last] > first.entered) --last;
  const std::int32_t rounds = last / round;
  const std::int32_t microbatches = (rounds > 1 ? rounds / 2 : rounds) * round;
  if (microbatches == 0) return {};
  const Nanos time = first.left[last] - first.left[last - microbatches];
  return (time + microbatches / 2) / microbatches;
}

std::vector<WeightReport> account_for_weights(const Schedule& schedule, const MemoryModel& memory) {
  std::vector<WeightReport> reports;
  for (std::size_t rank = 0; rank < schedule.weights.size(); ++rank)
    reports.push_back(account_for_rank(schedule.order[rank], schedule.weights[rank]));
  if (memory.weight_bytes.empty()) return reports;
  for (WeightReport& report : reports) report.bytes = 0;
  if (!reports.empty())
    for (std::int32_t stage = 0; stage < schedule.stages(); ++stage)
      for (std::int32_t replica = 0; replica < schedule.replicas(stage); ++replica) {
        WeightReport& report = reports[schedule.rank_of_stage[stage] + replica];
        report.bytes = expect_countable(add_memory(
            *report.bytes, multiply_memory(memory.weight_bytes[stage], report.versions)));
      }
  return reports;
}

}  // namespace bubblescope::inline sim
