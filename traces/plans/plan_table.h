// The result of `plan`, and how it is written.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/analysis/plan.h"
#include "sim/model/known_errors.h"
#include "traces/json/json_writer.h"

namespace bubblescope::traces {

/// The best plan's schedule remains the best, in one configuration or another, until a cost
/// reaches this value; beyond it another schedule is better.
struct BreakEven {
  std::string parameter;  ///< the cost that is varied: "p2p", "w", "i", "total-w", ...
  Nanos now = 0;
  Nanos at = 0;  ///< the nearest value at which `runner_up` is ahead
  Configuration runner_up;
};

/// Why configurations of one schedule did not become plans.
struct Refusal {
  std::string schedule;
  std::string reason;  ///< why the configuration closest to fitting, or the first, failed
  std::int64_t configurations = 0;
  std::optional<Configuration> closest;  ///< the one that lacks the least memory
};

/// How the plans of a model are trained, as far as it is the same for all and a framework must be
/// told.
struct TrainingSettings {
  bool sequence_parallel = true;
  std::int32_t zero_stage = 1;
  bool fp8 = false;
  /// With selective recomputation, the up-projections of latent attention are recomputed, and not
  /// the attention itself.
  bool recomputes_up_projections = false;
  /// Whether gradients are reduced, and new weights gathered, beside compute.
  bool overlaps_gradients = false;
  bool overlaps_tensor = false;  ///< whether the collectives of tensor ranks are hidden in part
  /// Parallelism::shard_ranks, where ZeRO shards anything.
  std::optional<std::int32_t> shard_ranks = {};
};

struct PlanTable {
  std::vector<Plan> plans;            ///< the plans that fit, ranked
  std::vector<std::string> commands;  ///< [plan]; in text that of the first
  /// For a model, the errors of predictions for the nearest published runs, which hold for plans
  /// without Plan::no_errors; empty if there are none.
  std::optional<KnownErrors> errors;
  std::optional<TrainingSettings> training;  ///< empty: there is no model
  std::string model = {};                    ///< "llama3-8b on h100"; empty: there is none
  bool reserves_memory = false;              ///< the user chose how much of a device stays free
  /// Where no framework has #1 by name, why PyTorch's CSV cannot hold it either; empty if it can.
  std::string not_in_pytorch_csv;
  bool any_framework = true;  ///< the plans are not restricted to one framework's
  std::vector<Refusal> refusals;
  std::vector<BreakEven> break_evens;
  /// The schedule that is the best between these points; nullopt: none were sought.
  std::optional<std::string> break_even_best;
  std::vector<std::string> unaffected;    ///< parameters whose variation changes nothing
  std::vector<std::string> not_compared;  ///< as other costs give them another order
  std::int64_t configurations = 0;        ///< number of configurations that were tried
  std::int64_t covered = 0;               ///< number not tried, because another one is no worse
};

/// Names the part of a layer that a configuration recomputes: "none", "full", "core_attn,mlp".
std::string recompute_text(const Configuration& configuration);

/// How far ahead a rank gathers weights: "2", "full", or "none" where it does not.
std::string lookahead_text(const Configuration& configuration);

struct PlanTextOptions {
  int width = 80;
  bool colour = false;
  bool fit = false;       ///< leaves out the least important columns to fit `width`
  std::size_t rows = 20;  ///< number of rows of the ranked table
};

/// Writes the plan for people:
///
/// 12 plans of 14 configurations that were tried, best first     (after a model's name, if any)
/// #  schedule  pp  vpp   m   step  per sample  bubble  peak
/// 1  zb-h2      4    1  16  52 ms     3.25 ms   7.7 %     7  *
///
/// `~` before a number marks a tie with the first plan: closer than predictions can tell apart. `*`
/// marks the Pareto front: no other plan is as fast in as little memory. The break-even points, the
/// reason why each other schedule's best plan loses, and the refusals follow.
std::string write_plan_text(const PlanTable& table, const PlanTextOptions& options);

/// Returns the schedule of a plan where no published run had it; empty if one had.
std::string find_unpublished(const Plan& plan, const KnownErrors& errors);

/// Writes one plan as an object: {"schedule":"zb-h2","pp":4,...}; `command` may be empty.
void write_plan(JsonWriter& json, const Plan& plan, const std::optional<KnownErrors>& errors,
                const std::string& command = {});

/// Writes
/// {"format":"bubblescope-plan/1","plans":[{"schedule":"zb-h2","pp":4,...},...],"pareto":[0,3],...}
std::string write_plan_json(const PlanTable& table);

/// Writes one line per plan, best first, under the names of the JSON members.
std::string write_plan_csv(const PlanTable& table);

enum class Framework : std::uint8_t { kMegatron, kTorchtitan };

/// Writes what the framework takes to run the best plan of each of `count` pairs of pp and vpp, of
/// the schedules that it has. Megatron-LM's arguments are one line per plan, torchtitan's toml (of
/// release 0.2) one document; a comment before each says which plan it is. Throws Error without a
/// model, and (Fault::kProblem) where the framework has none of them.
std::string write_plan_config(const PlanTable& table, Framework framework, std::size_t count);

}  // namespace bubblescope::traces
