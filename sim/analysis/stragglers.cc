// Finds stragglers by comparing medians.
#include "sim/analysis/stragglers.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "sim/ir/quantile.h"

namespace bubblescope::inline sim {

namespace {

constexpr std::size_t kMaxOutliers = 10;
constexpr double kOutlierFactor = 1.5;

using StageKind = std::pair<std::int32_t, OpKind>;

/// All durations of every stage and kind, over all steps.
class StageTimes {
 public:
  explicit StageTimes(std::span<const ObservedStep> steps) {
    for (const ObservedStep& step : steps)
      step.for_each_compute([&](InstructionId id, const Instruction& instruction) {
        const StageKind place{instruction.op.stage, instruction.op.kind};
        times_[place].push_back(step.duration_of(id));
        ranks_[place] = instruction.rank;
        if (step.is_on_side_stage(instruction.op)) on_side_.insert(place);
      });
    for (auto& [place, times] : times_) medians_[place] = quantile(std::move(times), 50);
  }

  Nanos median(const Op& op) const { return medians_.at({op.stage, op.kind}); }

  std::vector<StageSpeed> speeds() const {
    std::vector<StageSpeed> speeds;
    for (const auto& [place, median] : medians_)
      if (!on_side_.contains(place))
        speeds.push_back({place.first, ranks_.at(place), place.second, median, others(place)});
    return speeds;
  }

 private:
  /// The median of the other stages' medians, or the stage's own median if there is no other stage.
  Nanos others(const StageKind& place) const {
    std::vector<Nanos> medians;
    for (const auto& [other, median] : medians_)
      if (other.second == place.second && other.first != place.first && !on_side_.contains(other))
        medians.push_back(median);
    return medians.empty() ? medians_.at(place) : quantile(std::move(medians), 50);
  }

  std::map<StageKind, std::vector<Nanos>> times_;
  std::map<StageKind, Nanos> medians_;
  std::map<StageKind, std::int32_t> ranks_;
  std::set<StageKind> on_side_;  ///< those of side stages
};

std::vector<Outlier> find_outliers(std::span<const ObservedStep> steps, const StageTimes& times) {
  std::vector<Outlier> outliers;
  for (std::size_t at = 0; at < steps.size(); ++at)
    steps[at].for_each_compute([&](InstructionId id, const Instruction& instruction) {
      const Nanos duration = steps[at].duration_of(id);
      const Nanos median = times.median(instruction.op);
      if (static_cast<double>(duration) > kOutlierFactor * static_cast<double>(median))
        outliers.push_back({at, instruction.rank, instruction.op, duration, median});
    });
  std::stable_sort(outliers.begin(), outliers.end(), [](const Outlier& left, const Outlier& right) {
    return left.duration - left.median > right.duration - right.median;
  });
  if (outliers.size() > kMaxOutliers) outliers.resize(kMaxOutliers);
  return outliers;
}

}  // namespace

StragglerReport find_stragglers(std::span<const ObservedStep> steps) {
  StragglerReport report;
  const StageTimes times(steps);
  report.stages = times.speeds();
  report.outliers = find_outliers(steps, times);
  return report;
}

}  // namespace bubblescope::inline sim
