// Config: everything that a prediction depends on beside the schedule, as plain values.
//
//   Config config;
//   config.costs = UniformCosts{{.forward = 1'000'000, .input_grad = 1'000'000,
//                                .weight_grad = 1'000'000}};
//   Prediction step = predict(schedule, config);
// Nothing in it names a file: the caller has read all files before.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "sim/analysis/critical_path.h"
#include "sim/ir/lower.h"
#include "sim/ir/offload.h"
#include "sim/ir/pytorch_release.h"
#include "sim/ir/shard_stages.h"
#include "sim/model/cost_table.h"
#include "sim/model/injection.h"
#include "sim/model/layer_cost.h"
#include "sim/model/layer_layout.h"
#include "sim/model/scenarios.h"
#include "sim/model/uniform_network.h"
#include "sim/predict/ready_priority.h"
#include "sim/predict/step_end.h"

namespace bubblescope::inline sim {

/// The same costs for every stage.
struct UniformCosts {
  UniformCost cost = {};
  std::optional<UniformNetwork> network = {};  ///< nullopt: a message takes cost.message
};

/// Uniform costs in total, distributed over stages in proportion to their layers.
struct LayoutCosts {
  UniformCost cost = {};
  LayerLayout layout = {};  ///< one entry per stage of a pipeline
  LayerCosts layers = {};
};

/// Costs and memory that follow from a model on devices.
struct ModelCosts {
  ModelOnDevices on = {};
  /// How steps end, which replaces Config::lower.update.
  StepEnd end = {};
  /// Whether gradients shrink to the largest type with which every rank fits, if none fits as is.
  bool may_shrink_gradients = true;
  bool tries_splits = true;  ///< whether choose_layers() tries any; else layers are balanced
  std::vector<std::int64_t> balanced = {};  ///< the balanced split, where the caller knows it
};

/// Where the durations come from. A CostTable is what a cost file holds.
using CostSource = std::variant<UniformCosts, LayoutCosts, CostTable, ModelCosts>;

/// The same memory for every stage, in millionths of the user's own unit.
struct UniformMemory {
  MemoryDelta unit{kWhole, 0, -kWhole};
  UniformCost::Per per = UniformCost::Per::kRank;  ///< the part of the model that `unit` is for
  std::vector<Millionths> cap = {};   ///< one for all ranks, or one per rank; empty: none
  std::vector<Bytes> cap_bytes = {};  ///< the same in bytes, where activations have bytes; or `cap`
  Release release = Release::kWeightGrad;
  SavedFractions saved = {};  ///< where activations are recomputed
};

/// FSDP: ranks gather the parameters of a stage before they use it, and drop them afterwards.
struct Sharding {
  PytorchRelease release = PytorchRelease::kFrom215;  ///< the order of gathering and dropping is
                                                      ///< that of this release
  bool waits_for_reductions = false;                  ///< whether updates wait for reductions
  /// How far ahead ranks gather; nullopt: as far as may be, and gathered weights are counted only
  /// where a model's ZeRO stage 3 shards them.
  std::optional<UnshardLookahead> lookahead = {};
};

/// Ways to save memory, each of which is added to the schedule as ops.
struct Moves {
  std::vector<Recompute> recompute = {};  ///< one for all stages, or one per stage; empty: none
  std::optional<OffloadPlan> offload = {};
  std::optional<Sharding> sharding = {};
  /// Whether messages are posted where PyTorch's releases since 2.15 post them (pytorch_lists.h).
  bool takes_turns_of_215 = false;

  bool any() const { return !recompute.empty() || offload || sharding || takes_turns_of_215; }
};

/// How much of a report a prediction has.
enum class Detail : std::uint8_t {
  kTimes,           ///< none
  kBrief,           ///< what plans are compared by, as analyze_briefly() gives it; where a model
                    ///< exceeds its devices, the peaks alone
  kBriefWithBound,  ///< the same with the lower bound
  kFull,            ///< all of it
};

/// The inputs of a prediction that depend neither on the schedule nor on the costs.
struct StepConditions {
  Injections injections = {};  ///< faults whose delays are added
  /// How ranks choose among the ops that are ready; nullopt: they keep the schedule's order.
  std::optional<ReadyPriority> policy = {};
  Slack slack = Slack::kFind;  ///< whether a full report has it
};

struct Config : StepConditions {
  std::vector<Nanos> arrivals = {};  ///< [microbatch], from the step's start; empty: all at 0
  LowerOptions lower = {};           ///< how messages are sent, and how the step ends
  CostSource costs = {};
  UniformMemory memory = {};  ///< its amounts give way to the bytes of a CostTable or a model
  Moves moves = {};
  std::vector<SlowRank> slow_ranks = {};  ///< slow in every scenario, and in the step itself
  Detail detail = Detail::kFull;
  Scenarios scenarios = {};  ///< noise and sensitivity, for a full report
};

}  // namespace bubblescope::inline sim
