// Plans: the same training under many configurations, ranked.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/analysis/layer_split.h"
#include "sim/analysis/report.h"

namespace bubblescope {

/// One way to run a training step on so many devices.
struct Configuration {
  std::string schedule;
  Shape shape;
  std::int32_t tensor = 1;         ///< ranks that share every layer
  std::int32_t data = 1;           ///< pipelines that train on different samples
  std::int32_t expert = 1;         ///< ranks that share a layer's experts
  std::int32_t expert_tensor = 1;  ///< ranks that share each of them
  std::int32_t context = 1;        ///< ranks that share a sequence
  std::int32_t micro_batch_size = 1;
  Recompute recompute = Recompute::kNone;
  LayerSplit split = LayerSplit::kBalanced;  ///< of a model's layers

  std::int64_t samples() const {
    return std::int64_t{shape.microbatches} * micro_batch_size * data;
  }
  bool operator==(const Configuration&) const = default;
};

/// What a configuration costs: the part of its BubbleReport by which plans are compared. The mean
/// busy and idle times of its ranks add up to the step but for rounding to nanoseconds.
struct Plan {
  Configuration configuration;
  Nanos step = 0;
  Nanos lower_bound = 0;
  double bubble_ratio = 0;
  Nanos mean_busy = 0;
  std::array<Nanos, kIdleCauses> mean_idle{};
  double peak_activations = 0;
  double peak_units = 0;  ///< in the unit of --mem
  std::optional<Bytes> peak_bytes;
  std::optional<double> mfu;  ///< model FLOPs utilisation, a fraction
  std::optional<double> tokens_per_second;
  std::optional<Gradients> gradients;  ///< of a model: what its memory counts
  std::optional<Bytes> head_room;      ///< of a model, on the fullest rank; below zero: lacking
  std::int32_t tie_group = 0;          ///< 1 are those that cannot be told from the best, and so on
  std::string layout;  ///< of a model: its layers on every stage, as Megatron-LM writes it

  /// What plans are ranked by: configurations of different batches become comparable.
  double nanos_per_sample() const {
    return static_cast<double>(step) / static_cast<double>(configuration.samples());
  }
  /// Of the fullest rank: bytes where they are known, else the unit of --mem.
  double memory() const { return peak_bytes ? static_cast<double>(*peak_bytes) : peak_units; }
};

/// What became of a configuration: a plan, a reason why there is none, or both where the plan may
/// not be used (it does not fit). Neither where it was not tried, as another one covers it.
struct Outcome {
  std::optional<Plan> plan;
  std::string refusal;
  double excess = 0;  ///< of memory needed over what there is, a fraction; 0 for other reasons

  bool was_tried() const { return plan || !refusal.empty(); }
};

/// The comparable part of a report.
Plan summarize(const Configuration& configuration, const BubbleReport& report);

/// Best first: least time per sample, then least memory, then the order in which they came.
std::vector<Plan> rank_plans(std::vector<Plan> plans);

/// Ranked plans with their groups: a group begins with the first plan that is more than `width` (a
/// fraction of time per sample) behind the first of the group before it.
std::vector<Plan> with_ties(std::vector<Plan> ranked, double width);

/// Of ranked plans, those that no other beats in both time and memory, by index.
std::vector<std::size_t> pareto_front(const std::vector<Plan>& ranked);

/// For every schedule its best plan, in rank order, by index.
std::vector<std::size_t> best_of_each_schedule(const std::vector<Plan>& ranked);

}  // namespace bubblescope
