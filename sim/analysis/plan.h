// Plans: configurations for the same training job, ranked by time and memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/analysis/layer_split.h"
#include "sim/analysis/report.h"
#include "sim/ir/shard_stages.h"
#include "sim/model/recompute_modules.h"
#include "sim/model/recomputed_layers.h"

namespace bubblescope::inline sim {

/// One way to run a training step on a number of devices.
struct Configuration {
  std::string schedule;
  Shape shape;
  std::int32_t tensor = 1;         ///< ranks that share every layer
  std::int32_t data = 1;           ///< pipelines that train on different samples
  std::int32_t expert = 1;         ///< ranks that share a layer's experts
  std::int32_t expert_tensor = 1;  ///< ranks that share each expert
  std::int32_t context = 1;        ///< ranks that share a sequence
  std::int32_t micro_batch_size = 1;
  Recompute recompute = Recompute::kNone;
  /// Whether evaluating chooses the modules that are recomputed, and with them `recompute`.
  bool chooses_modules = false;
  RecomputeModules modules = {};             ///< Parallelism::modules
  RecomputedLayers recomputed = {};          ///< Parallelism::recomputed
  LayerSplit split = LayerSplit::kBalanced;  ///< of a model's layers
  /// Sends that a rank may have outstanding; 0: ranks do not wait for them.
  std::int32_t send_budget = 0;
  /// How far ahead FSDP gathers weights, once for many micro-batches; nullopt: every op gathers its
  /// own.
  std::optional<UnshardLookahead> lookahead = {};
  bool moe_overlap = false;  ///< see ScheduleRequest; false for schedules that do not have it

  std::int64_t samples() const {
    return std::int64_t{shape.microbatches} * micro_batch_size * data;
  }
  bool operator==(const Configuration&) const = default;
};

/// The predicted cost of a configuration: the part of its BubbleReport by which plans are compared.
/// The mean busy and idle times of its ranks and the time outside the pipeline add up to the step,
/// except for rounding to nanoseconds.
struct Plan {
  Configuration configuration;
  Nanos step = 0;              ///< the whole step, of the slowest replica
  Nanos outside_pipeline = 0;  ///< the part of it before and after the pipeline
  Nanos lower_bound = 0;       ///< of the whole step
  double bubble_ratio = 0;
  Nanos mean_busy = 0;
  std::array<Nanos, kIdleCauses> mean_idle{};
  double peak_activations = 0;
  double peak_units = 0;  ///< in the memory model's unit
  std::optional<Bytes> peak_bytes;
  std::optional<double> mfu;  ///< model FLOPs utilization, a fraction
  std::optional<double> tokens_per_second;
  std::optional<Gradients> gradients;  ///< for a model: the format that its memory assumes
  /// For a model: free memory on the fullest rank; negative: missing memory.
  std::optional<Bytes> head_room;
  std::int32_t tie_group = 0;  ///< 1: cannot be distinguished from the best, and so on
  std::string layout;          ///< for a model: layers of every stage, as Megatron-LM writes them
  /// For a model: why the errors of published runs say nothing about it; empty where they hold.
  std::string no_errors;

  /// The ranking criterion: makes configurations with different batch sizes comparable.
  double nanos_per_sample() const {
    return static_cast<double>(step) / static_cast<double>(configuration.samples());
  }
  /// For the fullest rank: bytes if they are known, else the memory model's unit.
  double memory() const { return peak_bytes ? static_cast<double>(*peak_bytes) : peak_units; }
};

/// The result for a configuration: a plan, a reason why there is none, or both for a plan that
/// cannot be used because it does not fit. Neither if it was not tried because another one covers
/// it.
struct Outcome {
  std::optional<Plan> plan;
  std::string refusal;
  double excess = 0;      ///< missing memory as a fraction of the limit; 0 for other reasons
  bool over_cap = false;  ///< whether that limit is the cap, and the devices hold it

  bool was_tried() const { return plan || !refusal.empty(); }
  /// Whether it lacks less memory than `other`. What only a cap refuses is closer than what no
  /// device holds.
  bool is_closer_than(const Outcome& other) const {
    if (excess <= 0 || other.excess <= 0) return excess > other.excess;
    return over_cap != other.over_cap ? over_cap : excess < other.excess;
  }
};

/// Extracts the comparable part of a report.
Plan summarize(const Configuration& configuration, const BubbleReport& report);

/// Returns the plans with the best first: by least time per sample, then by least memory, then in
/// their original order.
std::vector<Plan> rank_plans(std::vector<Plan> plans);

/// Assigns tie groups to ranked plans. A group begins with the first plan that is more than `width`
/// (a fraction of time per sample) slower than the first of the previous group.
std::vector<Plan> with_ties(std::vector<Plan> ranked, double width);

/// Returns the indices of the ranked plans that no other plan beats in both time and memory.
std::vector<std::size_t> find_pareto_front(const std::vector<Plan>& ranked);

/// Returns the index of every schedule's best plan, in rank order.
std::vector<std::size_t> find_best_of_each_schedule(const std::vector<Plan>& ranked);

}  // namespace bubblescope::inline sim
