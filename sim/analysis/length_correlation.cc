// Correlates the forward and backward times of micro-batches.
#include "sim/analysis/length_correlation.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace bubblescope::inline sim {

namespace {

constexpr std::size_t kMinSamples = 8;

/// The forward and backward times of a micro-batch, less those of the mean micro-batch.
struct Deviation {
  double forward = 0;
  double backward = 0;

  Deviation& operator+=(const Deviation& other) {
    forward += other.forward;
    backward += other.backward;
    return *this;
  }
  Deviation& operator-=(const Deviation& other) {
    forward -= other.forward;
    backward -= other.backward;
    return *this;
  }
};

/// A stage's micro-batches of one replica in one step.
using OfMicrobatches = std::map<std::int32_t, Deviation>;

void subtract_mean(OfMicrobatches& times) {
  Deviation mean;
  for (const auto& [_, time] : times) mean += time;
  const auto count = static_cast<double>(times.size());
  mean.forward /= count;
  mean.backward /= count;
  for (auto& [_, time] : times) time -= mean;
}

/// Per replica and step, for each stage.
using OfStages = std::map<std::int32_t, OfMicrobatches>;

std::vector<OfStages> collect_deviations(std::span<const ReplicatedStep> steps,
                                         std::span<const Counterfactual> counterfactuals) {
  std::vector<OfStages> all;
  for (std::size_t at = 0; at < steps.size(); ++at) {
    const ReplicatedStep& step = steps[at];
    const std::vector<Durations> durations = apply_counterfactuals(steps, at, counterfactuals);
    for (std::size_t replica = 0; replica < step.size(); ++replica) {
      OfStages& stages = all.emplace_back();
      step[replica].for_each_compute([&](InstructionId id, const Instruction& one) {
        Deviation& time = stages[one.op.stage][one.op.microbatch];
        (one.op.kind == OpKind::kForward ? time.forward : time.backward) +=
            static_cast<double>(durations[replica][id]);
      });
      for (auto& [_, times] : stages) subtract_mean(times);
    }
  }
  return all;
}

/// The correlation over all stages but one; empty if the times of the others do not vary.
std::optional<double> correlate_without(const std::vector<OfStages>& all,
                                        std::optional<std::int32_t> left_out) {
  double both = 0;
  double forwards = 0;
  double backwards = 0;
  std::size_t samples = 0;
  for (const OfStages& stages : all) {
    OfMicrobatches sums;
    for (const auto& [stage, times] : stages)
      if (stage != left_out)
        for (const auto& [microbatch, time] : times) sums[microbatch] += time;
    for (const auto& [_, sum] : sums) {
      both += sum.forward * sum.backward;
      forwards += sum.forward * sum.forward;
      backwards += sum.backward * sum.backward;
    }
    samples += sums.size();
  }
  if (samples < kMinSamples || forwards == 0 || backwards == 0) return {};
  return both / std::sqrt(forwards * backwards);
}

}  // namespace

std::optional<double> correlate_lengths(std::span<const ReplicatedStep> steps,
                                        std::span<const Counterfactual> counterfactuals) {
  const std::vector<OfStages> all = collect_deviations(steps, counterfactuals);
  std::optional<double> least = correlate_without(all, {});
  if (!least || all.front().size() < 2) return least;
  for (const auto& [stage, _] : all.front()) {
    const std::optional<double> without = correlate_without(all, stage);
    if (!without) return {};
    least = std::min(*least, *without);
  }
  return least;
}

}  // namespace bubblescope::inline sim
