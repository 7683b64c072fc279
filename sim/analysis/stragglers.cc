// Medians by stage and kind, and counterfactual replays.
#include "sim/analysis/stragglers.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "sim/analysis/idle.h"
#include "sim/analysis/replay.h"
#include "sim/engine/simulate.h"

namespace bubblescope {

namespace {

constexpr std::size_t kMostOutliers = 10;
constexpr double kOutlierFactor = 1.5;

using StageKind = std::pair<std::int32_t, OpKind>;

/// The lower one of the two middle values. Reorders `values`.
Nanos median_of(std::vector<Nanos>& values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::size_t index_of(OpKind kind) { return static_cast<std::size_t>(kind); }

Nanos duration_of(const ObservedStep& step, InstructionId id) {
  return step.timeline.end[id] - step.timeline.start[id];
}

template <class Visit>
void visit_computes(const ObservedStep& step, Visit visit) {
  for (InstructionId id = 0; id < step.program.size(); ++id)
    if (is_compute(step.program.instructions[id].op.kind)) visit(id, step.program.instructions[id]);
}

Nanos makespan_with(const ObservedStep& step, const std::vector<Nanos>& durations) {
  const StepBounds bounds = step_bounds(simulate(step.program, durations));
  return bounds.end - bounds.start;
}

using KindMedians = std::array<Nanos, kComputeKinds>;

/// The median of every kind in one step, over the ops for which `counts` holds.
template <class Counts>
KindMedians medians_by_kind(const ObservedStep& step, Counts counts) {
  std::array<std::vector<Nanos>, kComputeKinds> durations;
  visit_computes(step, [&](InstructionId id, const Instruction& instruction) {
    if (counts(instruction))
      durations[index_of(instruction.op.kind)].push_back(duration_of(step, id));
  });
  KindMedians medians{};
  for (std::size_t kind = 0; kind < kComputeKinds; ++kind)
    medians[kind] = median_of(durations[kind]);
  return medians;
}

/// The makespan of a step in which the ops for which `replaced` holds take the given medians. Kinds
/// without a median keep their own times.
template <class Replaced>
Nanos makespan_where(const ObservedStep& step, const KindMedians& medians, Replaced replaced) {
  std::vector<Nanos> durations = durations_of(step.timeline);
  visit_computes(step, [&](InstructionId id, const Instruction& instruction) {
    const Nanos median = medians[index_of(instruction.op.kind)];
    if (median > 0 && replaced(instruction)) durations[id] = median;
  });
  return makespan_with(step, durations);
}

/// The contribution of one step to the report's means.
struct StepAnswers {
  Nanos replayed = 0;
  Nanos even = 0;
  std::vector<Nanos> without_rank;
  std::array<std::optional<Nanos>, kComputeKinds> without_kind;
};

StepAnswers ask(const ObservedStep& step) {
  const auto every = [](const Instruction&) { return true; };
  const KindMedians medians = medians_by_kind(step, every);
  StepAnswers answers;
  answers.replayed = makespan_with(step, durations_of(step.timeline));
  answers.even = makespan_where(step, medians, every);
  for (std::int32_t rank = 0; step.program.ranks > 1 && rank < step.program.ranks; ++rank) {
    const KindMedians others = medians_by_kind(
        step, [=](const Instruction& instruction) { return instruction.rank != rank; });
    answers.without_rank.push_back(makespan_where(
        step, others, [=](const Instruction& instruction) { return instruction.rank == rank; }));
  }
  for (std::size_t kind = 0; kind < kComputeKinds; ++kind)
    if (medians[kind] > 0)
      answers.without_kind[kind] = makespan_where(
          step, medians, [=](const Instruction& one) { return index_of(one.op.kind) == kind; });
  return answers;
}

/// Adds 1/count of a step's results to the report.
class Mean {
 public:
  explicit Mean(std::size_t count) : count_(static_cast<double>(count)) {}

  void add(StragglerReport& report, const StepAnswers& answers) {
    add(replayed_, answers.replayed, report.replayed);
    add(even_, answers.even, report.even);
    without_rank_.resize(answers.without_rank.size());
    report.without_rank.resize(answers.without_rank.size());
    for (std::size_t rank = 0; rank < answers.without_rank.size(); ++rank)
      add(without_rank_[rank], answers.without_rank[rank], report.without_rank[rank]);
    for (std::size_t kind = 0; kind < kComputeKinds; ++kind) {
      if (!answers.without_kind[kind]) continue;
      Nanos mean = 0;
      add(without_kind_[kind], *answers.without_kind[kind], mean);
      report.without_kind[kind] = mean;
    }
  }

 private:
  void add(double& sum, Nanos value, Nanos& mean) const {
    sum += static_cast<double>(value) / count_;
    mean = std::llround(sum);
  }

  double count_;
  double replayed_ = 0;
  double even_ = 0;
  std::vector<double> without_rank_;
  std::array<double, kComputeKinds> without_kind_{};
};

/// All durations of every stage and kind, over all steps.
class StageTimes {
 public:
  explicit StageTimes(std::span<const ObservedStep> steps) {
    for (const ObservedStep& step : steps)
      visit_computes(step, [&](InstructionId id, const Instruction& instruction) {
        const StageKind place{instruction.op.stage, instruction.op.kind};
        times_[place].push_back(duration_of(step, id));
        ranks_[place] = instruction.rank;
      });
    for (auto& [place, times] : times_) medians_[place] = median_of(times);
  }

  Nanos median(const Op& op) const { return medians_.at({op.stage, op.kind}); }

  std::vector<StageSpeed> speeds() const {
    std::vector<StageSpeed> speeds;
    for (const auto& [place, median] : medians_)
      speeds.push_back({place.first, ranks_.at(place), place.second, median, others(place)});
    return speeds;
  }

 private:
  /// The median of the other stages' medians; the stage's own if there is no other.
  Nanos others(const StageKind& place) const {
    std::vector<Nanos> medians;
    for (const auto& [other, median] : medians_)
      if (other.second == place.second && other.first != place.first) medians.push_back(median);
    return medians.empty() ? medians_.at(place) : median_of(medians);
  }

  std::map<StageKind, std::vector<Nanos>> times_;
  std::map<StageKind, Nanos> medians_;
  std::map<StageKind, std::int32_t> ranks_;
};

std::vector<Outlier> find_outliers(std::span<const ObservedStep> steps, const StageTimes& times) {
  std::vector<Outlier> outliers;
  for (std::size_t at = 0; at < steps.size(); ++at)
    visit_computes(steps[at], [&](InstructionId id, const Instruction& instruction) {
      const Nanos duration = duration_of(steps[at], id);
      const Nanos median = times.median(instruction.op);
      if (static_cast<double>(duration) > kOutlierFactor * static_cast<double>(median))
        outliers.push_back({at, instruction.rank, instruction.op, duration, median});
    });
  std::stable_sort(outliers.begin(), outliers.end(), [](const Outlier& left, const Outlier& right) {
    return left.duration - left.median > right.duration - right.median;
  });
  if (outliers.size() > kMostOutliers) outliers.resize(kMostOutliers);
  return outliers;
}

}  // namespace

StragglerReport find_stragglers(std::span<const ObservedStep> steps) {
  StragglerReport report;
  Mean mean(steps.size());
  for (const ObservedStep& step : steps) mean.add(report, ask(step));
  const StageTimes times(steps);
  report.stages = times.speeds();
  report.outliers = find_outliers(steps, times);
  return report;
}

}  // namespace bubblescope
