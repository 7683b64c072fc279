// Pairs each flag with what it needs to take effect.
#include "tools/inputs/unused_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>

#include "sim/model/cost_table.h"
#include "tools/inputs/given_flag.h"
#include "tools/inputs/load_schedule.h"
#include "tools/inputs/schedule_request.h"
#include "tools/inputs/unused_model_flags.h"
#include "tools/print.h"

namespace bubblescope::tools {

namespace {

constexpr const char* kNoPairs =
    "no op of the step is in an overlapped pair, as those of dualpipev are";

/// The kinds of ops and features that occur in any of the steps.
struct Contents {
  std::array<bool, kOpKinds> kinds{};
  bool pairs = false;
  bool parts = false;        ///< ranks have several chunks, or sequences several slices
  bool own_messages = true;  ///< every step posts its messages where a file says
  std::int32_t ranks = 0;    ///< of the step that has the most

  bool has(OpKind kind) const { return kinds.at(static_cast<std::size_t>(kind)); }
  bool trains() const {
    return has(OpKind::kBackward) || has(OpKind::kInputGrad) || has(OpKind::kWeightGrad);
  }
  bool has_messages() const { return has(OpKind::kSendForward) || has(OpKind::kSendBackward); }
};

Contents find_contents(std::span<const PredictedOps> steps) {
  Contents contents;
  for (const PredictedOps& step : steps) {
    const Shape& shape = step.schedule->shape;
    contents.parts = contents.parts || shape.chunks > 1 || shape.slices > 1;
    contents.ranks = std::max(contents.ranks, shape.ranks);
    contents.own_messages = contents.own_messages && posts_messages(*step.schedule);
    for (const Instruction& instruction : step.program->instructions) {
      contents.kinds.at(static_cast<std::size_t>(instruction.op.kind)) = true;
      contents.pairs = contents.pairs || instruction.op.pairing != Pairing::kAlone;
    }
  }
  return contents;
}

bool has_usual_unit(const UniformMemory& memory) {
  const MemoryDelta usual = UniformMemory{}.unit;
  return memory.unit.forward == usual.forward && memory.unit.input_grad == usual.input_grad;
}

bool has_other_fractions(const UniformMemory& memory) {
  const SavedFractions usual;
  return memory.saved.full != usual.full || memory.saved.selective != usual.selective;
}

/// Flags on the execution of ops that the order of a schedule never shows.
std::array<GivenFlag, 2> order_flags(const PredictOptions& options, const char* why) {
  const LowerOptions& lower = options.cost.lower;
  return {{{"--overlap", lower.overlap != LowerOptions{}.overlap, false, why},
           {"--ranks-per-host-link", lower.ranks_per_host_link > 1, false, why}}};
}

bool has_layer_costs(const ShapeOptions& shape) {
  const LayerCosts usual;
  const LayerCosts& given = shape.layer_costs;
  return given.embedding != usual.embedding || given.transformer != usual.transformer ||
         given.prediction != usual.prediction || given.loss != usual.loss;
}

bool recomputes(const PredictOptions& options, Recompute kind) {
  const std::vector<Recompute>& chosen = options.moves.recompute;
  return chosen.empty() || std::find(chosen.begin(), chosen.end(), kind) != chosen.end();
}

void report_costs(const PredictOptions& options, const Contents& step, Hints hints) {
  const UniformCost& cost = options.cost.uniform;
  const UpdateCost& update = cost.update;
  const bool recompute = step.has(OpKind::kRecompute);
  const auto is_given = [&](const char* flag) { return options.cost.given.contains(flag); };
  const bool trains = step.trains();
  const char* const no_half =
      trains ? "no backward is split; all take --b" : "the step has no backward";
  const GivenFlag flags[] = {
      {"--b", is_given("--b"), trains, "the step has no backward"},
      {"--i", is_given("--i") && (cost.backward || !trains), step.has(OpKind::kInputGrad), no_half},
      {"--w", is_given("--w") && (cost.backward || !trains), step.has(OpKind::kWeightGrad),
       no_half},
      {"--r", cost.recompute.has_value(), recompute && recomputes(options, Recompute::kFull),
       "the step has no such op; add --recompute full"},
      {"--r-selective", cost.selective_recompute.has_value(),
       recompute && recomputes(options, Recompute::kSelective),
       "the step has no such op; add --recompute selective"},
      {"--copy", cost.copy > 0, step.has(OpKind::kEvict),
       options.moves.offload ? "--offload moves nothing here"
                             : "the step has no such op; add --offload"},
      {"--offload", options.moves.offload.has_value(), step.has(OpKind::kEvict),
       options.moves.offload && options.moves.offload->share == 0
           ? "its share is 0"
           : "no activation waits for its backward as long as two copies may take"},
      {"--p2p", cost.message > 0, step.has_messages(), "no message crosses ranks"},
      {"--optimizer-step", update.optimizer > 0, step.has(OpKind::kOptimizer),
       "the step has no such op; add --optimizer"},
      {"--reduce-grad", update.reduce_grad > 0, step.has(OpKind::kReduceGrad),
       "the step has no such op; add --grad-reduction or --fsdp"},
      {"--unshard", update.unshard > 0, step.has(OpKind::kUnshard),
       "the step has no such op; add --fsdp"},
      {"--norm", cost.norm > 0, step.has(OpKind::kNorm),
       "the step has no such op; add --optimizer barrier"},
  };
  report_unused(flags, hints);
}

/// An order of parts and the time of a pair change pairs alone, and p2p jitter messages that take
/// time.
void report_absent(const PredictInputs& inputs, const Contents& step, Hints hints) {
  const PredictOptions& options = inputs.flags();
  const bool by_stage = options.model.given() || !options.cost.file.empty();
  const bool takes_time = by_stage || options.cost.uniform.message > 0;
  const bool any_pair = step.pairs || options.policy;
  const std::optional<CostTable>& table = inputs.files().costs;
  const bool has_pair_time =
      table && !shortens_pairs(*table) &&
      std::any_of(table->stages.begin(), table->stages.end(),
                  [](const StageEntry& stage) { return stage.overlapped_pair.has_value(); });
  const GivenFlag flags[] = {
      {"--p2p-jitter", options.noise.noise.message_jitter > 0, step.has_messages() && takes_time,
       step.has_messages() ? "messages take no time; give --p2p" : "no message crosses ranks"},
      {"the order of --parts", options.model.parts && options.model.parts->pair_order, any_pair,
       kNoPairs},
      {"'overlapped_pair' of --costs", has_pair_time, any_pair, kNoPairs},
  };
  report_unused(flags, hints);
}

/// Flags that add ops, where the ops take no time unless another flag gives it. Such ops may still
/// be on the critical path, and take turns where messages are placed.
void report_free_ops(const PredictOptions& options, Hints hints) {
  const UniformCost& cost = options.cost.uniform;
  const LowerOptions& lower = options.cost.lower;
  const bool modelled = options.model.given();
  const bool has_times = modelled || !options.cost.file.empty();
  const UpdateCost& update = cost.update;
  struct AddedOps {
    const char* flag;
    bool is_given;
    bool take_time;
    const char* remedy;
  };
  const AddedOps all[] = {
      {"--optimizer", lower.update.optimizer != OptimizerMode::kNone,
       // A barrier makes every rank's span end with the step.
       has_times || update.optimizer > 0 || cost.norm > 0 ||
           lower.update.optimizer == OptimizerMode::kBarrier,
       "--optimizer-step or --norm"},
      {"--grad-reduction", lower.update.reduction != GradReduction::kNone,
       has_times || update.reduce_grad > 0, "--reduce-grad"},
      {"--fsdp", options.shape.sharded,
       has_times || update.unshard > 0 || update.reduce_grad > 0 ||
           options.shape.lookahead.has_value(),
       "--unshard or --reduce-grad"},
  };
  for (const AddedOps& ops : all)
    if (ops.is_given && !ops.take_time)
      print_message("bubblescope: {} adds ops that take no time{}{}\n", ops.flag,
                    hints == Hints::kFlags ? "; give " : "",
                    hints == Hints::kFlags ? ops.remedy : "");
}

void report_execution(const PredictOptions& options, const Contents& step, Hints hints) {
  const LowerOptions& lower = options.cost.lower;
  const bool modelled = options.model.given();
  const bool by_stage = modelled || !options.cost.file.empty();
  const std::int32_t per_node =
      options.cost.network ? options.cost.network->ranks_per_node.value_or(0) : 0;
  const GivenFlag flags[] = {
      {"what --network says of messages between nodes", per_node > 0, per_node < step.ranks,
       "all ranks are on one node; 'per-node' is the number of ranks of a node"},
      {"--costs-per", options.cost.uniform.per != UniformCost::Per::kRank, !by_stage && step.parts,
       by_stage ? "other flags give the times" : "ranks have one chunk, and sequences one slice"},
      {"--overlap", lower.overlap != LowerOptions{}.overlap, step.pairs || options.policy,
       kNoPairs},
      {"--lowering", lower.posting != ReceivePosting::kAsap,
       lower.mode != P2pMode::kDataflow && !step.own_messages,
       step.own_messages ? "the file posts its own messages"
                         : "nothing is posted with --p2p-mode dataflow; give another mode"},
      {"--ranks-per-host-link", lower.ranks_per_host_link > 1, step.has(OpKind::kEvict),
       options.moves.offload ? "--offload moves nothing here"
                             : "nothing is copied to the host; add --offload"},
      {"--release", options.memory.release != Release::kWeightGrad, step.has(OpKind::kInputGrad),
       "no backward is split"},
      {"--saved-fraction", has_other_fractions(options.memory),
       !modelled && step.has(OpKind::kRecompute),
       modelled ? "--model gives the bytes that are saved"
                : "nothing is recomputed; add --recompute"},
      {"--layout-costs", has_layer_costs(options.shape), !modelled && !options.shape.layout.empty(),
       modelled ? "--model gives the times of layers" : "there are no layers; add --layout"},
  };
  report_unused(flags, hints);
}

}  // namespace

void warn_of_unused_flags(const PredictInputs& inputs, std::span<const PredictedOps> steps,
                          Hints hints) {
  warn_of_unused_step_flags(inputs, steps, hints);
  if (inputs.files().model && !steps.empty()) warn_of_unused_model_flags(inputs, steps);
}

void warn_of_unused_step_flags(const PredictInputs& inputs, std::span<const PredictedOps> steps,
                               Hints hints) {
  if (steps.empty()) return;
  const PredictOptions& options = inputs.flags();
  const Contents contents = find_contents(steps);
  report_costs(options, contents, hints);
  report_absent(inputs, contents, hints);
  report_free_ops(options, hints);
  report_execution(options, contents, hints);
}

void warn_of_unused_unit(const UniformMemory& memory, const std::string& why) {
  if (has_usual_unit(memory) || !memory.cap.empty()) return;
  print_message("bubblescope: --mem changes nothing: {}; give --cap in its unit\n", why);
}

namespace {

std::vector<const ScheduleDef*> find_definitions(const std::vector<std::string>& names) {
  std::vector<const ScheduleDef*> definitions;
  for (const std::string& name : names)
    if (const ScheduleDef* def = Registry<ScheduleDef>::instance().find(name))
      definitions.push_back(def);
  return definitions;
}

}  // namespace

void warn_of_unused_memory(const UniformMemory& memory, const PredictedOps& step) {
  const Contents contents = find_contents(std::span(&step, 1));
  const GivenFlag flags[] = {
      {"--release", memory.release != Release::kWeightGrad, contents.has(OpKind::kInputGrad),
       "no backward is split"},
      {"--saved-fraction", has_other_fractions(memory), contents.has(OpKind::kRecompute),
       "nothing is recomputed"},
  };
  report_unused(flags);
}

namespace {

/// A flag of shapes, which some schedules take.
struct ShapeFlag {
  const char* name;
  bool (*is_given)(const ShapeOptions& shape);
  bool is_shown;  ///< next to each schedule, as its number of chunks or slices; a file must agree
};

constexpr ShapeFlag kShapeFlags[] = {
    {"--vpp", [](const ShapeOptions& shape) { return shape.chunks.has_value(); }, true},
    {"--microbatch-group-size",
     [](const ShapeOptions& shape) { return shape.group_size.has_value(); }, false},
    {"--slices", [](const ShapeOptions& shape) { return shape.slices.value_or(1) > 1; }, true},
    {"--in-flight", [](const ShapeOptions& shape) { return shape.in_flight.has_value(); }, false},
    {"--replicas", [](const ShapeOptions& shape) { return !shape.replicas.empty(); }, false},
    {"--moe-overlap", [](const ShapeOptions& shape) { return shape.moe_overlap; }, false},
};

constexpr const char* kOfFiles = "the order of a file is what it is";

void warn_of_shape_flags(const PredictOptions& options, const std::vector<std::string>& names) {
  const std::vector<const ScheduleDef*> definitions = find_definitions(names);
  const bool are_files = definitions.empty();
  for (const ShapeFlag& flag : kShapeFlags) {
    if (!flag.is_given(options.shape) || (flag.is_shown && are_files)) continue;
    std::vector<std::string> takers;
    for (const ScheduleDef* def : definitions)
      if (flag.is_given(drop_unused_flags(options.shape, *def))) takers.push_back(def->name);
    if (takers.empty())
      print_message("bubblescope: {} changes nothing: {}\n", flag.name,
                    are_files ? kOfFiles : "none of these schedules takes it");
    else if (takers.size() < names.size() && !flag.is_shown)
      print_message("bubblescope: {} changes {} alone: the other schedules do not take it\n",
                    flag.name, fmt::join(takers, ", "));
  }
}

void warn_of_profile(const PredictOptions& options, const std::vector<std::string>& names) {
  const GivenFlag profile[] = {{"--profile", options.shape.profile != Profile::kNone,
                                !find_definitions(names).empty() || options.shape.sharded,
                                kOfFiles}};
  report_unused(profile);
}

}  // namespace

void warn_of_unused_shape(const PredictOptions& options, const std::vector<std::string>& names) {
  warn_of_shape_flags(options, names);
  warn_of_profile(options, names);
}

void warn_of_file_shapes(const PredictOptions& options, std::vector<std::string> names,
                         ProfileUse profile_use) {
  std::erase_if(names, [](const std::string& name) { return !is_schedule_file(name); });
  if (names.empty()) return;
  warn_of_shape_flags(options, names);
  if (profile_use == ProfileUse::kOrder) warn_of_profile(options, names);
}

void warn_of_unused_update(const PredictOptions& options, const char* why) {
  const UpdateOptions& update = options.cost.lower.update;
  const GivenFlag flags[] = {
      {"--optimizer", update.optimizer != OptimizerMode::kNone, false, why},
      {"--grad-reduction", update.reduction != GradReduction::kNone, false, why},
  };
  report_unused(flags);
}

void warn_of_unused_times(const PredictOptions& options, const std::vector<std::string>& names) {
  if (options.loss) return;  // the other replicas take the micro-batches in an order by costs
  const std::vector<const ScheduleDef*> definitions = find_definitions(names);
  if (std::any_of(definitions.begin(), definitions.end(),
                  [](const ScheduleDef* def) { return def->reads_costs; }))
    return;
  constexpr const char* kWhy = "the order does not depend on costs";
  std::vector<GivenFlag> flags;
  for (const std::string& flag : options.cost.given)
    flags.push_back({flag.c_str(), true, false, kWhy});
  flags.push_back({"--network", options.cost.network.has_value(), false, kWhy});
  flags.push_back(
      {"--costs-per", options.cost.uniform.per != UniformCost::Per::kRank, false, kWhy});
  flags.push_back({"--layout-costs", has_layer_costs(options.shape), false, kWhy});
  const auto others = order_flags(options, kWhy);
  flags.insert(flags.end(), others.begin(), others.end());
  report_unused(flags);
}

void warn_of_unwritten_flags(const PredictOptions& options, const std::string& name) {
  warn_of_unused_times(options, {name});
  constexpr const char* kWhy = "what is written has the order alone";
  warn_of_unused_update(options, kWhy);
  const std::vector<const ScheduleDef*> definitions = find_definitions({name});
  const bool reads_memory = !definitions.empty() && definitions.front()->reads_costs;
  const UniformMemory& memory = options.memory;
  const LowerOptions& lower = options.cost.lower;
  const GivenFlag flags[] = {
      {"--inject", !options.injections.empty(), false, kWhy},
      {"--p2p-mode", lower.mode != P2pMode::kDataflow, false, kWhy},
      {"--cap", !memory.cap.empty() || !memory.cap_bytes.empty(), reads_memory, kWhy},
      {"--mem", !has_usual_unit(memory), reads_memory, kWhy},
      {"--release", memory.release != Release::kWeightGrad, reads_memory, kWhy},
      {"--saved-fraction", has_other_fractions(memory), reads_memory, kWhy},
  };
  report_unused(flags);
}

}  // namespace bubblescope::tools
