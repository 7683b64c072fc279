// Steady states and weight versions.
#include "sim/analysis/asynchronous.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace bubblescope {

namespace {

/// What happens to micro-batches on the first stage.
struct FirstStage {
  std::vector<Nanos> left;  ///< per micro-batch: the end of its last op
  Nanos last_entry = 0;     ///< the latest start of a forward
};

FirstStage watch_first_stage(const Schedule& schedule, const Program& program,
                             const Timeline& timeline) {
  FirstStage first{std::vector<Nanos>(schedule.shape.microbatches, 0), 0};
  for (InstructionId id = 0; id < program.size(); ++id) {
    const Instruction& instruction = program.instructions[id];
    const Op& op = instruction.op;
    if (!is_compute(op.kind) || !schedule.is_first(op.stage)) continue;
    first.left[op.microbatch] = std::max(first.left[op.microbatch], timeline.end[id]);
    if (op.kind == OpKind::kForward)
      first.last_entry = std::max(first.last_entry, timeline.start[id]);
  }
  return first;
}

/// The versions that a rank holds: the newest, and those that backwards still have to read.
class HeldVersions {
 public:
  void add(const Op& op, const WeightUse& use) {
    if (op.kind == OpKind::kForward) ++readers_[use.read];
    if (op.kind == OpKind::kBackward && --readers_[use.read] == 0) readers_.erase(use.read);
    newest_ = use.written.value_or(newest_);
    const bool newest_is_read = readers_.contains(newest_);
    most_ = std::max(most_, readers_.size() + (newest_is_read ? 0 : 1));
  }
  std::int32_t most() const { return static_cast<std::int32_t>(most_); }

 private:
  std::map<std::int32_t, std::int32_t> readers_;  ///< version -> micro-batches on their way
  std::int32_t newest_ = 0;
  std::size_t most_ = 0;
};

WeightReport account_for_rank(const RankOrder& ops, const std::vector<WeightUse>& uses) {
  WeightReport report;
  HeldVersions held;
  const auto first_backward = std::find_if(
      ops.begin(), ops.end(), [](const Op& op) { return op.kind == OpKind::kBackward; });
  const auto forwards = std::count_if(ops.begin(), first_backward,
                                      [](const Op& op) { return op.kind == OpKind::kForward; });
  report.warmup = std::max(0, static_cast<std::int32_t>(forwards) - 1);
  for (std::size_t at = 0; at < ops.size(); ++at) {
    held.add(ops[at], uses[at]);
    if (uses[at].written)
      report.staleness = std::max(report.staleness, *uses[at].written - 1 - uses[at].read);
  }
  report.versions = held.most();
  return report;
}

}  // namespace

std::optional<Nanos> find_period(const Schedule& schedule, const Program& program,
                                 const Timeline& timeline) {
  if (schedule.weights.empty()) return {};
  const FirstStage first = watch_first_stage(schedule, program, timeline);
  std::int32_t round = 1;
  for (const std::int32_t replicas : schedule.replicas_of_stage) round = std::lcm(round, replicas);
  std::int32_t last = schedule.shape.microbatches - 1;
  while (last > 0 && first.left[last] > first.last_entry) --last;
  const std::int32_t microbatches = last / 2 / round * round;
  if (microbatches == 0) return {};
  const Nanos time = first.left[last] - first.left[last - microbatches];
  return (time + microbatches / 2) / microbatches;
}

std::vector<WeightReport> account_for_weights(const Schedule& schedule) {
  std::vector<WeightReport> reports;
  for (std::size_t rank = 0; rank < schedule.weights.size(); ++rank)
    reports.push_back(account_for_rank(schedule.order[rank], schedule.weights[rank]));
  return reports;
}

}  // namespace bubblescope
