// Adds up what each rank of a plain step does.
#include "sim/analysis/plain_step.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "sim/analysis/plain_bound.h"
#include "sim/analysis/plain_memory.h"
#include "sim/analysis/plain_report.h"
#include "sim/analysis/plain_times.h"
#include "sim/analysis/plain_walk.h"
#include "sim/ir/range.h"

namespace bubblescope::inline sim {

namespace {

constexpr auto kFull = static_cast<std::size_t>(OpKind::kBackward);
constexpr auto kSplit = static_cast<std::size_t>(OpKind::kInputGrad);

/// Times and memory that are the same for all micro-batches of a stage.
class UniformRunner {
 public:
  struct Rank : PlainRank {
    PlainHeld held;
  };

  UniformRunner(const CostModel& costs, const MemoryModel& memory)
      : message_(costs.message), amounts_(find_plain_amounts(memory)) {
    for (const StageCost& cost : costs.stages)
      durations_.push_back({cost.forward, cost.backward, cost.input_grad, cost.weight_grad});
  }

  Nanos activation_travel(const Op&) const { return message_; }
  Nanos gradient_travel(const Op&) const { return message_; }

  /// Runs an op, and returns its end.
  Nanos run(const Op& op, Nanos start, const PlainStage&, Rank& rank) const {
    const auto kind = static_cast<std::size_t>(op.kind);
    rank.held.add(amounts_[kind]);
    return start + durations_[static_cast<std::size_t>(op.stage)][kind];
  }

  /// The times that a stage's ops have taken, by kind.
  std::array<Nanos, kPlainKinds> work_of(const PlainStage& stage, std::size_t number) const {
    std::array<Nanos, kPlainKinds> busy{};
    for (std::size_t kind = 0; kind < kPlainKinds; ++kind)
      busy[kind] = stage.count[kind] * durations_[number][kind];
    return busy;
  }

 private:
  Nanos message_;
  std::array<PlainAmount, kPlainKinds> amounts_;
  std::vector<std::array<Nanos, kPlainKinds>> durations_;  ///< [stage]
};

/// The backwards that are split: all or none, or else one by one.
SplitBackwards find_backwards(const PlainWalk<UniformRunner>& walk, const Schedule& schedule) {
  std::int64_t full = 0;
  std::int64_t split = 0;
  for (const PlainStage& stage : walk.stages()) {
    full += stage.count[kFull];
    split += stage.count[kSplit];
  }
  if (full > 0 && split > 0) return list_backwards(walk, schedule.shape.microbatches);
  return SplitBackwards{split > 0, {}};
}

BubbleReport report_walk(PlainWalk<UniformRunner>& walk, const UniformRunner& runner,
                         const Schedule& schedule, const MemoryModel& memory) {
  BubbleReport report = begin_plain_report(schedule, memory);
  for (std::size_t rank = 0; rank < report.ranks.size(); ++rank) {
    report_waits(walk.ranks()[rank], report.ranks[rank]);
    report.ranks[rank].peak = walk.ranks()[rank].held.peak(schedule, memory);
  }
  for (std::size_t at = 0; at < walk.stages().size(); ++at) {
    const PlainStage& stage = walk.stages()[at];
    add_work(runner.work_of(stage, at), report.ranks[static_cast<std::size_t>(stage.rank)]);
  }
  return complete_plain_report(std::move(report), walk.stages());
}

/// Whether micro-batches and links take the same times, and nothing is counted in bytes.
bool has_plain_models(const CostModel& costs, const MemoryModel& memory, const Schedule& schedule) {
  return covers_plain_step(costs, schedule) && costs.by_microbatch.empty() &&
         costs.message_between.empty() && costs.messages.empty() &&
         memory.activation_bytes.empty() && memory.by_microbatch.empty() &&
         memory.static_bytes.empty() && !memory.counts_outputs && !memory.counts_gathered;
}

/// Whether no sum of times or amounts can leave its range, whatever the order.
bool is_in_range(const Schedule& schedule, const CostModel& costs, const MemoryModel& memory) {
  Nanos longest = costs.message;
  Nanos shortest = costs.message;
  for (const StageCost& cost : costs.stages)
    for (const Nanos duration : {cost.forward, cost.backward, cost.input_grad, cost.weight_grad}) {
      longest = std::max(longest, duration);
      shortest = std::min(shortest, duration);
    }
  const double ops = 2 * static_cast<double>(schedule.op_count());
  return shortest >= 0 &&
         static_cast<double>(longest) * ops * schedule.shape.ranks <
             static_cast<double>(kMaxNanos) / 2 &&
         are_units_in_range(memory, 2 * schedule.op_count());
}

}  // namespace

std::optional<BubbleReport> report_plain_step(const Schedule& schedule, const CostModel& costs,
                                              const MemoryModel& memory, LowerBound bound) {
  if (!has_plain_frame(schedule) || !has_plain_models(costs, memory, schedule) ||
      !is_in_range(schedule, costs, memory))
    return {};
  UniformRunner runner(costs, memory);
  PlainWalk<UniformRunner> walk(schedule, runner);
  if (!walk.run()) return {};
  BubbleReport report = report_walk(walk, runner, schedule, memory);
  if (bound == LowerBound::kFind)
    report.lower_bound = bound_plain_step(schedule, walk.stages(), PlainTimes(schedule, costs),
                                          find_backwards(walk, schedule));
  return report;
}

}  // namespace bubblescope::inline sim
