// Takes means per op, and fits noise to what they leave.
#include "sim/analysis/fit_microbatches.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "sim/analysis/fit_noise.h"
#include "sim/ir/counted.h"
#include "sim/ir/error.h"
#include "sim/ir/median.h"

namespace bubblescope::inline sim {

namespace {

/// Lengths that differ by less than this from one iteration to the next are the same.
constexpr double kSameLength = 0.01;

/// Identifies an op in every iteration: stage, kind, micro-batch.
using OpKey = std::tuple<std::int32_t, OpKind, std::int32_t>;

OpKey key_of(const OpSample& sample) { return {sample.stage, sample.kind, sample.microbatch}; }

struct Sizes {
  std::int32_t microbatches = 0;
  std::int32_t slices = 0;
};

Sizes sizes_of(const ObservedStep& step) {
  Sizes sizes;
  step.for_each_compute([&](InstructionId, const Instruction& one) {
    sizes.microbatches = std::max(sizes.microbatches, one.op.microbatch + 1);
    sizes.slices = std::max(sizes.slices, std::int32_t{one.op.slice} + 1);
  });
  return sizes;
}

/// The sizes that all iterations share.
Sizes find_sizes(std::span<const ReplicatedStep> steps) {
  for (const ReplicatedStep& step : steps)
    if (step.size() > 1)
      throw Error(
          Fault::kProblem,
          fmt::format(
              "there are no times per micro-batch: the steps have {}, each with micro-batches of "
              "its own; give the files of one replica, or fit times per stage",
              counted(step.size(), "data-parallel replica")));
  const Sizes first = sizes_of(steps.front().front());
  for (const ReplicatedStep& step : steps) {
    const Sizes own = sizes_of(step.front());
    if (own.microbatches != first.microbatches)
      throw Error(Fault::kProblem,
                  fmt::format("there are no times per micro-batch: iterations have {} and {}; give "
                              "those of one number, or fit times per stage",
                              first.microbatches, counted(own.microbatches, "micro-batch")));
    if (own.slices != first.slices)
      throw Error(Fault::kProblem,
                  fmt::format("there are no times per micro-batch: iterations have {} and {}; give "
                              "those of one number, or fit times per stage",
                              first.slices, counted(own.slices, "slice")));
  }
  return first;
}

using Times = std::map<OpKey, std::vector<double>>;

Times group(std::span<const OpSample> samples) {
  Times times;
  for (const OpSample& sample : samples) times[key_of(sample)].push_back(sample.time);
  return times;
}

/// The samples as if all micro-batches were equal: what is left differs between iterations only.
/// Deviations from a median of `count` values are too small by about sqrt(1 - 1 / count), which is
/// made up for.
std::vector<OpSample> remove_microbatches(std::vector<OpSample> samples) {
  const Times times = group(samples);
  std::map<OpKey, double> medians;
  std::map<std::pair<std::int32_t, OpKind>, std::vector<double>> of_stage;
  for (const auto& [key, values] : times) {
    medians[key] = median_of(values);
    of_stage[{std::get<0>(key), std::get<1>(key)}].push_back(medians[key]);
  }
  for (OpSample& sample : samples) {
    const OpKey key = key_of(sample);
    const auto count = static_cast<double>(times.at(key).size());
    const double ratio = medians[key] > 0 ? sample.time / medians[key] : 0;
    const double usual = median_of(of_stage.at({sample.stage, sample.kind}));
    sample.time = count > 1 ? usual * std::pow(ratio, std::sqrt(count / (count - 1))) : usual;
  }
  return samples;
}

/// Returns a text such as "F of micro-batch 3 in stage 1 takes 10.2 ms in one iteration and 41 ms
/// in another".
std::string describe_largest_difference(const Times& times) {
  std::string text;
  double largest = 0;
  for (const auto& [key, values] : times) {
    const auto [shortest, longest] = std::minmax_element(values.begin(), values.end());
    if (*shortest <= 0 || *longest / *shortest <= largest) continue;
    largest = *longest / *shortest;
    text = fmt::format(
        "{} of micro-batch {} in stage {} takes {:.4g} ms in one iteration and {:.4g} ms in "
        "another",
        code(std::get<1>(key)), std::get<2>(key), std::get<0>(key), *shortest / 1e6,
        *longest / 1e6);
  }
  return text;
}

/// The median times of every op, by slice.
class SliceTimes {
 public:
  SliceTimes(std::span<const ReplicatedStep> steps, std::int32_t stages) {
    for (const ReplicatedStep& step : steps)
      step.front().for_each_compute([&](InstructionId id, const Instruction& one) {
        const SliceKey key{one.op.stage % stages, one.op.kind, one.op.microbatch, one.op.slice};
        times_[key].push_back(static_cast<double>(step.front().duration_of(id)));
      });
  }

  std::optional<Nanos> find(std::int32_t stage, OpKind kind, std::int32_t microbatch,
                            std::int32_t slice) const {
    const auto found = times_.find({stage, kind, microbatch, slice});
    if (found == times_.end()) return {};
    return std::llround(median_of(found->second));
  }

 private:
  using SliceKey = std::tuple<std::int32_t, OpKind, std::int32_t, std::int32_t>;
  std::map<SliceKey, std::vector<double>> times_;
};

/// The entries with a time for every kind that any of them has, as cost files complete them.
std::vector<StageEntry> complete_entries(std::vector<StageEntry> stages) {
  const auto any = [&](std::optional<Nanos> StageEntry::*time) {
    return std::any_of(stages.begin(), stages.end(),
                       [&](const StageEntry& stage) { return (stage.*time).has_value(); });
  };
  const bool has_backward = any(&StageEntry::backward);
  const bool has_recompute = any(&StageEntry::recompute);
  for (StageEntry& stage : stages) {
    if (has_backward && !stage.backward) stage.backward = full_backward(stage).value_or(0);
    if (has_recompute && !stage.recompute) stage.recompute = stage.forward;
  }
  return stages;
}

/// The time of one stage's ops of one kind for one slice of one micro-batch.
class StageTimes {
 public:
  StageTimes(const SliceTimes& times, const StageEntry& entry, std::int32_t stage)
      : times_(times), entry_(entry), stage_(stage) {}

  /// An op that no iteration ran takes its time from the backward, or from the halves, that they
  /// ran instead.
  std::optional<Nanos> find(OpKind kind, std::int32_t microbatch, std::int32_t slice) const {
    const auto seen = [&](OpKind other) { return times_.find(stage_, other, microbatch, slice); };
    if (const auto own = seen(kind)) return own;
    if (kind == OpKind::kBackward) {
      const std::optional<Nanos> input = seen(OpKind::kInputGrad);
      const std::optional<Nanos> weight = seen(OpKind::kWeightGrad);
      if (!input && !weight) return {};
      return input.value_or(0) + weight.value_or(0);
    }
    const std::optional<Nanos> whole = seen(OpKind::kBackward);
    if (!whole || !entry_.input_grad || !entry_.weight_grad) return {};
    const Nanos input = input_part(*whole);
    if (kind == OpKind::kInputGrad) return input;
    if (kind == OpKind::kWeightGrad) return *whole - input;
    return {};
  }

 private:
  /// Returns the part of a whole backward that the input gradient usually takes.
  Nanos input_part(Nanos whole) const {
    const auto both = static_cast<double>(*entry_.input_grad + *entry_.weight_grad);
    if (both == 0) return 0;
    const double fraction = static_cast<double>(*entry_.input_grad) / both;
    return std::llround(static_cast<double>(whole) * fraction);
  }

  const SliceTimes& times_;
  const StageEntry& entry_;
  std::int32_t stage_;
};

/// The list of a stage for one kind of op, whose mean is known.
CostList make_list(const StageTimes& times, OpKind kind, Nanos mean, const Sizes& sizes) {
  CostList list{time_key(kind), sizes.microbatches, sizes.slices > 1 ? sizes.slices : 0, {}};
  for (std::int32_t microbatch = 0; microbatch < sizes.microbatches; ++microbatch)
    for (std::int32_t slice = 0; slice < sizes.slices; ++slice)
      list.values.push_back(
          times.find(kind, microbatch, slice).value_or(mean / std::max(sizes.slices, 1)));
  return list;
}

}  // namespace

MicrobatchCosts fit_microbatches(std::span<const ReplicatedStep> steps,
                                 const std::vector<StageEntry>& stages) {
  const std::vector<StageEntry> entries = complete_entries(stages);
  const Sizes sizes = find_sizes(steps);
  const auto count = static_cast<std::int32_t>(stages.size());
  const std::vector<OpSample> samples = collect_samples(steps, count);
  MicrobatchCosts costs;
  costs.noise = fit_noise(remove_microbatches(samples)).noise;
  if (costs.noise.sequence_length_jitter > kSameLength)
    throw Error(Fault::kProblem,
                "there are no times per micro-batch: iterations differ in their micro-batches (" +
                    describe_largest_difference(group(samples)) +
                    "); give a trace of one step, or fit times per stage");
  costs.noise.sequence_length_jitter = 0;
  const SliceTimes times(steps, count);
  for (std::int32_t stage = 0; stage < count; ++stage) {
    const StageEntry& entry = entries[static_cast<std::size_t>(stage)];
    const StageTimes own(times, entry, stage);
    std::vector<CostList>& lists = costs.lists.emplace_back();
    for (std::size_t at = 0; at < kComputeKinds; ++at) {
      const auto kind = static_cast<OpKind>(at);
      if (const auto mean = time_of(entry, time_key(kind)))
        lists.push_back(make_list(own, kind, *mean, sizes));
    }
  }
  return costs;
}

}  // namespace bubblescope::inline sim
