// The flags of the command line, as strings and numbers; no file is opened here.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sim/ir/lower.h"
#include "sim/ir/offload.h"
#include "sim/ir/pytorch_release.h"
#include "sim/model/injection.h"
#include "sim/model/schedule_def.h"
#include "sim/predict/config.h"
#include "sim/predict/rank_loss.h"
#include "tools/command.h"
#include "tools/flags/choice.h"
#include "tools/flags/command_flags.h"
#include "tools/flags/model_options.h"
#include "tools/flags/network_options.h"
#include "tools/flags/noise_options.h"

namespace bubblescope::tools {

/// The heading of the flags about memory.
inline constexpr const char* kMemoryHeading = "Memory";

/// Schedule shape, and the framework whose rules it follows.
struct ShapeOptions {
  std::optional<std::int32_t> ranks;
  std::optional<std::int32_t> chunks;
  std::optional<std::int32_t> microbatches;
  std::optional<std::int32_t> group_size;
  std::optional<std::int32_t> slices;
  bool moe_overlap = false;
  std::vector<std::int32_t> replicas;
  std::optional<std::int32_t> in_flight;
  bool sharded = false;                       ///< --fsdp
  std::optional<UnshardLookahead> lookahead;  ///< --unshard-lookahead
  Profile profile = Profile::kNone;
  LayerLayout layout;  ///< empty: stages are equal
  LayerCosts layer_costs;
};
void add_shape_options(CommandFlags& app, ShapeOptions& options);
void add_profile_option(CommandFlags& app, ShapeOptions& options);
void add_moe_overlap_option(CommandFlags& app, ShapeOptions& options);
/// Returns the PyTorch release whose lists a profile asks for; the current one without a profile.
PytorchRelease choose_release(Profile profile);

/// The costs of ops and messages, and how they run.
struct CostOptions {
  UniformCost uniform;
  bool any_uniform = false;               ///< whether a cost flag was given at all
  std::set<std::string> given;            ///< the flags of times that were given, such as "--f"
  StepEnd end;                            ///< what flags say of the end of a step
  std::string file;                       ///< --costs; empty where not given
  std::optional<UniformNetwork> network;  ///< not added by add_cost_options()
  LowerOptions lower;
};
void add_cost_options(CommandFlags& app, CostOptions& options);
/// Gives those halves of a backward that are not given what is left of the full one.
void split_backward(CostOptions& options);
using SetDuration = std::function<void(UniformCost&, Nanos)>;
/// A flag of one duration, after which the backward is split.
void add_duration(CommandFlags& app, CostOptions& options, const Flag& flag,
                  const SetDuration& set);
/// Adds --network, for what is simulated.
void add_network_option(CommandFlags& app, CostOptions& options);

/// The memory that ops add, and its limit. `per` is that of --costs-per, which these leave alone.
void add_memory_options(CommandFlags& app, UniformMemory& options);

/// Activations that a schedule's ranks do not keep until the backward.
struct ActivationOptions {
  std::vector<Recompute> recompute;  ///< one for all stages, or one per stage; empty: none
  std::optional<OffloadPlan> offload;
};
void add_activation_options(CommandFlags& app, ActivationOptions& options);

/// All options of a prediction, as the command line gives them: read_inputs() opens what they name.
/// Those of StepConditions are not added by add_predict_options(), except for --inject.
struct PredictOptions : StepConditions {
  std::string command = "bubblescope simulate";  ///< that takes them, for examples in messages
  ShapeOptions shape;
  CostOptions cost;
  UniformMemory memory;
  ActivationOptions moves;
  NoiseOptions noise;            ///< for predictions alone; not added by add_predict_options()
  std::string arrivals_file;     ///< --arrivals; likewise
  std::optional<RankLoss> loss;  ///< --lose; likewise
  ModelOptions model;            ///< where given, it replaces the cost flags
};
void add_predict_options(CommandFlags& app, PredictOptions& options);
/// --send-budget and --unshard-lookahead: when a runtime waits for what it sends, and gathers.
void add_held_memory_options(CommandFlags& app, PredictOptions& options);
/// Parses --send-budget: a number of sends, or "none". Throws Error for anything else.
std::int32_t parse_send_budget(const std::string& text);
/// Returns a lookahead that is the same for all ranks: "full", "auto" or a number of stages, which
/// need not be possible. nullopt for anything else.
std::optional<UnshardLookahead> find_lookahead(const std::string& text);
/// The keys of --lose: only `simulate` times the step in which the rank dies.
enum class LossKeys : std::uint8_t { kRank, kRankAndTime };
/// Adds --lose, for commands that take one pipeline's schedule.
void add_loss_option(CommandFlags& app, PredictOptions& options, LossKeys keys = LossKeys::kRank);
/// Takes --replicas as those of the whole pipeline where a rank is lost. Throws Error where that
/// leaves none.
PredictOptions take_replicas(PredictOptions options);

/// Files to write: timeline format name -> path.
using ExportOptions = std::map<std::string, std::optional<std::string>>;
void add_export_options(CommandFlags& app, ExportOptions& exports);

}  // namespace bubblescope::tools
