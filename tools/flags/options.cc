// Turns arguments into options.
#include "tools/flags/options.h"

#include <cctype>

#include "sim/ir/error.h"
#include "sim/ir/nearest_names.h"
#include "sim/ir/number.h"
#include "sim/ir/registry.h"
#include "sim/ir/size_limits.h"
#include "tools/flags/choice.h"
#include "tools/flags/command_flags.h"
#include "tools/flags/heading.h"
#include "tools/flags/recompute_options.h"
#include "tools/flags/words.h"
#include "traces/costs/megatron_layout.h"
#include "traces/files/format.h"

namespace bubblescope::tools {

namespace {

constexpr const char* kCostHeading = "Costs";

std::vector<std::string> parts_of(const std::string& text) { return split(text, ','); }

Millionths parse_cap(const std::string& text) {
  const Millionths cap = parse_millionths(text);
  if (cap < 0) throw Error("'" + text + "' is negative; give a limit of 0 or more");
  return cap;
}

/// Parses "3" or "8,6,6" in the unit of --mem, "70GiB" or "70GiB,75GiB" in bytes.
void parse_caps(const std::string& text, UniformMemory& options) {
  options.cap.clear();
  options.cap_bytes.clear();
  for (const std::string& part : parts_of(text)) {
    if (!part.empty() && std::isalpha(static_cast<unsigned char>(part.back())) != 0)
      options.cap_bytes.push_back(parse_bytes(part));
    else
      options.cap.push_back(parse_cap(part));
  }
  if (!options.cap.empty() && !options.cap_bytes.empty())
    throw Error("'" + text + "' mixes bytes and units of --mem; write all in one of both");
}

MemoryDelta parse_delta(const std::string& text) {
  const std::vector<std::string> parts = parts_of(text);
  if (parts.size() != 3)
    throw Error("'" + text + "' is not F,I,W: three amounts that add up to 0, such as 1,0,-1");
  const auto amount = [&](std::size_t at) { return parse_millionths(parts[at]); };
  const MemoryDelta delta{amount(0), amount(1), amount(2)};
  if (delta.forward + delta.input_grad + delta.weight_grad != 0)
    throw Error("'" + text + "' does not add up to 0: what F takes, I and W must give back");
  if (delta.forward < 0 || delta.weight_grad > 0)
    throw Error("'" + text + "': F takes 0 or more, and I gives back no more than that");
  return delta;
}

/// Parses "0.5" or "50%".
Millionths parse_share(const std::string& text) {
  const Error refusal("'" + text + "' is not a fraction; write one from 0 to 1, or 0% to 100%");
  const bool is_percent = text.ends_with('%');
  Millionths share = 0;
  try {
    share = parse_millionths(is_percent ? text.substr(0, text.size() - 1) : text);
  } catch (const Error&) {
    throw refusal;
  }
  if (is_percent) share /= 100;
  if (share < 0 || share > kWhole) throw refusal;
  return share;
}

/// Parses "0.05", or "0.05,0.3" with the fraction that selective recomputation saves.
SavedFractions parse_saved_fractions(const std::string& text) {
  const std::vector<std::string> parts = parts_of(text);
  if (parts.empty() || parts.size() > 2)
    throw Error("'" + text + "' is not FULL[,SELECTIVE], such as 0.05 or 0.05,0.3");
  SavedFractions saved{.full = parse_share(parts[0])};
  if (parts.size() == 2) saved.selective = parse_share(parts[1]);
  return saved;
}

/// Parses "full", or "full,none,selective": one per stage.
std::vector<Recompute> parse_recomputes(const std::string& text) {
  std::vector<Recompute> stages;
  for (const std::string& part : parts_of(text)) stages.push_back(parse_recompute(part));
  return stages;
}

/// Parses "1", or "0.5,2" with the number of ops that a copy may overlap.
OffloadPlan parse_offload(const std::string& text) {
  const std::vector<std::string> parts = parts_of(text);
  if (parts.empty() || parts.size() > 2)
    throw Error("'" + text + "' is not SHARE[,OPS], such as 1 or 0.5,2");
  OffloadPlan plan{.share = parse_share(parts[0])};
  if (parts.size() == 1) return plan;
  const auto ops = parse_number<std::int32_t>(parts[1]);
  if (!ops || *ops < 1) throw Error("'" + parts[1] + "' is not a number of ops; write 1 or more");
  plan.ops_per_copy = *ops;
  return plan;
}

std::string mode_names() {
  std::string names;
  for (const Named<P2pMode>& known : kP2pModes)
    names += (names.empty() ? "" : "|") + std::string(known.name) +
             (known.choice == P2pMode::kEager ? ":K" : "");
  return names;
}

P2pRule read_p2p_rule(const std::string& text) {
  const std::string wanted = normalize_name(text);
  if (const auto rule = parse_p2p_rule(wanted)) return *rule;
  const std::string name = wanted.substr(0, wanted.find(':'));
  if (name == name_of(kP2pModes, P2pMode::kEager))
    throw Error("'" + text + "' has no number of slots; write eager:2");
  std::vector<std::string> names;
  for (const Named<P2pMode>& known : kP2pModes) names.emplace_back(known.name);
  throw Error("'" + text + "' is not one of " + mode_names() +
              suggestion(nearest_names(name, names)));
}

/// Adds flags for the end of a step and its costs.
void add_update_options(CommandFlags& app, CostOptions& options) {
  add_choice<OptimizerMode>(
      app, {"--optimizer", "what an optimizer step waits for (default none; for a model barrier)"},
      choices_of(kOptimizerModes), [&options](OptimizerMode mode) {
        options.lower.update.optimizer = mode;
        options.end.optimizer = mode;
      });
  add_choice<GradReduction>(
      app,
      {"--grad-reduction",
       "when a stage's gradients are reduced (default none; for a model overlap)"},
      choices_of(kGradReductions), [&options](GradReduction reduction) {
        options.lower.update.reduction = reduction;
        options.end.reduction = reduction;
      });
  add_duration(app, options, {"--optimizer-step", "update of a rank's weights (default 0)"},
               [](UniformCost& cost, Nanos time) { cost.update.optimizer = time; });
  add_duration(app, options, {"--reduce-grad", "reduction of a rank's gradients (default 0)"},
               [](UniformCost& cost, Nanos time) { cost.update.reduce_grad = time; });
  add_duration(app, options, {"--unshard", "gathering of a rank's parameters (default 0)"},
               [](UniformCost& cost, Nanos time) { cost.update.unshard = time; });
  add_duration(app, options, {"--norm", "sum of the gradient norm over all ranks (default 0)"},
               [](UniformCost& cost, Nanos time) { cost.norm = time; });
}

LayerCosts parse_layer_costs(const std::string& text) {
  const std::vector<std::string> parts = split(text, ',');
  if (parts.size() != 4) throw Error("'" + text + "' must be four numbers for E,t,m,L: 0,1,1,1");
  LayerCosts costs;
  Millionths* const values[] = {&costs.embedding, &costs.transformer, &costs.prediction,
                                &costs.loss};
  for (std::size_t at = 0; at < parts.size(); ++at) {
    *values[at] = parse_millionths(parts[at]);
    if (*values[at] < 0) throw Error("'" + parts[at] + "' is negative; a layer costs 0 or more");
  }
  return costs;
}

void add_layout_options(CommandFlags& app, ShapeOptions& options) {
  app.add_parsed(
         "--layout,--pipeline-model-parallel-layout",
         [&options](const std::string& text) { options.layout = traces::parse_layout(text); },
         "layers per stage as Megatron writes them, such as Et*3|(tt|)*29,m|L: the times are "
         "shared in proportion")
      ->type_name("LAYOUT");
  // It is not combined with --costs, where every stage has its own times.
  add_parsed(
      app,
      {"--layout-costs",
       "relative costs of an embedding, a layer, a prediction layer (MTP) and the loss "
       "(default 0,1,1,1)",
       "E,t,m,L"},
      [&options](const std::string& text) { options.layer_costs = parse_layer_costs(text); });
}

}  // namespace

void add_shape_options(CommandFlags& app, ShapeOptions& options) {
  const Heading heading(app, "Shape");
  const InRange microbatches(1, kMaxMicrobatches);
  const InRange ranks(1, kMaxRanks);
  app.add_option("--pp,--pipeline-model-parallel-size", options.ranks, "ranks of the pipeline")
      ->check(ranks);
  app.add_option("-m,--microbatches,--num-microbatches", options.microbatches,
                 "micro-batches of one step")
      ->check(microbatches);
  app.add_option("--vpp,--num-virtual-stages-per-pipeline-rank", options.chunks,
                 "stages (chunks) per rank; not needed by schedules with a fixed number of chunks")
      ->check(InRange(1, kMaxChunks));
  app.add_option("--microbatch-group-size,--microbatch-group-size-per-vp-stage", options.group_size,
                 "micro-batches that go through a chunk before the next one")
      ->check(microbatches);
  app.add_option("--slices", options.slices, "slices per sequence")->check(InRange(1, 4096));
  add_moe_overlap_option(app, options);
  app.add_option("--replicas", options.replicas, "ranks that share each stage, such as 2,1,1")
      ->delimiter(',')
      ->check(ranks)
      ->type_name("N,N,...");
  app.add_option(
         "--in-flight", options.in_flight,
         "maximum micro-batches in flight per rank of the first stage (PipeDream; default: as "
         "many as fill the pipeline, its NOAM)")
      ->check(microbatches);
  app.add_flag(
      "--fsdp", options.sharded,
      "FSDP: gather and drop stages' parameters, and reduce gradients, where PyTorch does");
  add_profile_option(app, options);
  add_layout_options(app, options);
}

void add_moe_overlap_option(CommandFlags& app, ShapeOptions& options) {
  app.add_flag("--moe-overlap", options.moe_overlap,
               "run one more warm-up forward, to hide the experts' all-to-all");
}

void add_profile_option(CommandFlags& app, ShapeOptions& options) {
  add_choice<Profile>(
      app,
      {"--profile",
       "follow this framework's rules; without it, the widest correct ones (pytorch: "
       "releases 2.6 to 2.14)"},
      choices_of(kProfiles), [&options](Profile profile) { options.profile = profile; });
}

PytorchRelease choose_release(Profile profile) {
  return profile == Profile::kPytorch ? PytorchRelease::kFrom26 : PytorchRelease::kFrom215;
}

/// Both get half of it if neither was given.
void split_backward(CostOptions& options) {
  UniformCost& cost = options.uniform;
  if (!cost.backward) return;
  const Nanos whole = *cost.backward;
  const auto is_given = [&](const char* flag, const char* total) {
    return options.given.contains(flag) || options.given.contains(total);
  };
  const bool has_input_grad = is_given("--i", "--total-i");
  const bool has_weight_grad = is_given("--w", "--total-w");
  if (!has_input_grad && !has_weight_grad) cost.input_grad = whole / 2;
  if (!has_weight_grad && cost.input_grad <= whole) cost.weight_grad = whole - cost.input_grad;
  if (!has_input_grad && cost.weight_grad <= whole) cost.input_grad = whole - cost.weight_grad;
}

void add_duration(CommandFlags& app, CostOptions& options, const Flag& flag,
                  const SetDuration& set) {
  add_parsed(app, flag, [&options, set, name = flag.name](const std::string& text) {
    set(options.uniform, parse_duration(text));
    options.any_uniform = true;
    options.given.insert(name);
    split_backward(options);
  });
}

namespace {

/// Adds the durations of ops and messages, the same for all ranks.
void add_duration_options(CommandFlags& app, CostOptions& options) {
  add_duration(app, options, {"--f", "forward of one micro-batch (a bare number is ms; default 1)"},
               [](UniformCost& cost, Nanos time) { cost.forward = time; });
  add_duration(app, options, {"--i", "input gradient (default 1 ms)"},
               [](UniformCost& cost, Nanos time) { cost.input_grad = time; });
  add_duration(app, options, {"--w", "weight gradient (default 1 ms)"},
               [](UniformCost& cost, Nanos time) { cost.weight_grad = time; });
  add_duration(app, options,
               {"--b", "full backward (default: i + w); halved where i and w are not given"},
               [](UniformCost& cost, Nanos time) { cost.backward = time; });
  add_duration(app, options, {"--r", "recomputation of everything (default: f)"},
               [](UniformCost& cost, Nanos time) { cost.recompute = time; });
  add_duration(app, options, {"--r-selective", "recomputation of attention (default: 0.027 f)"},
               [](UniformCost& cost, Nanos time) { cost.selective_recompute = time; });
  add_duration(
      app, options,
      {"--copy", "a copy of a forward's activations to another memory, or back (default 0)"},
      [](UniformCost& cost, Nanos time) { cost.copy = time; });
  add_duration(app, options,
               {"--output-layer",
                "forward of the output layer; its two gradients take as long each (default 0)"},
               [](UniformCost& cost, Nanos time) { cost.output_layer = time; });
  add_duration(app, options, {"--p2p", "one message between two ranks (default 0)"},
               [](UniformCost& cost, Nanos time) { cost.message = time; });
}

/// Adds how ops and messages become instructions.
void add_lowering_options(CommandFlags& app, CostOptions& options) {
  add_choice<Overlap>(
      app, {"--overlap", "how an overlapped forward-backward pair runs (default atomic)"},
      choices_of(kOverlaps), [&options](Overlap overlap) { options.lower.overlap = overlap; });
  add_parsed(app,
             {"--p2p-mode", "what posted sends and receives do (default dataflow)", mode_names()},
             [&options](const std::string& text) {
               const P2pRule rule = read_p2p_rule(text);
               options.lower.mode = rule.mode;
               options.lower.eager_slots = rule.eager_slots;
             });
  add_choice<ReceivePosting>(
      app, {"--lowering", "where receives are posted (default asap)"}, choices_of(kReceivePostings),
      [&options](ReceivePosting posting) { options.lower.posting = posting; });
  app.add_option("--ranks-per-host-link", options.lower.ranks_per_host_link,
                 "neighbouring ranks whose copies to and from the host share one link (default 1)")
      ->check(InRange(1, kMaxRanks));
}

}  // namespace

void add_cost_options(CommandFlags& app, CostOptions& options) {
  const Heading heading(app, kCostHeading);
  add_duration_options(app, options);
  add_update_options(app, options);
  using Per = UniformCost::Per;
  add_choice<Per>(
      app,
      {"--costs-per",
       "whether times are per rank's whole share, per chunk or per slice (default rank)"},
      {{"rank", Per::kRank}, {"chunk", Per::kChunk}, {"slice", Per::kSlice}},
      [&options](Per per) { options.uniform.per = per; });
  app.add_option("--costs", options.file, "costs per stage, links and memory (json)")
      ->type_name("FILE");
  add_lowering_options(app, options);
}

void add_memory_options(CommandFlags& app, UniformMemory& options) {
  const Heading heading(app, kMemoryHeading);
  add_parsed(app, {"--mem", "memory added by F, I and W, in any unit (default 1,0,-1)", "F,I,W"},
             [&options](const std::string& text) { options.unit = parse_delta(text); });
  add_parsed(
      app, {"--cap", "memory limit of a rank: 3 (units of --mem) or 70GiB (commas: per rank)", "X"},
      [&options](const std::string& text) { parse_caps(text, options); });
  add_choice<Release>(
      app, {"--release", "when activations are released (default w)"},
      {{"w", Release::kWeightGrad}, {"i", Release::kInputGrad}, {"half", Release::kHalf}},
      [&options](Release release) { options.release = release; });
  add_parsed(app,
             {"--saved-fraction",
              "fraction of activations that a recomputed forward saves (default 0,0.3)",
              "FULL[,SELECTIVE]"},
             [&options](const std::string& text) { options.saved = parse_saved_fractions(text); });
  app.accept_old_name("--kept", "--saved-fraction");
}

void add_activation_options(CommandFlags& app, ActivationOptions& options) {
  const Heading heading(app, kMemoryHeading);
  add_parsed(app,
             {"--recompute,--recompute-granularity",
              "what stages recompute before a backward (commas: per stage)", "none|selective|full"},
             [&options](const std::string& text) { options.recompute = parse_recomputes(text); });
  add_parsed(app,
             {"--offload",
              "fraction of forwards whose activations are offloaded to the host, and ops that "
              "overlap each copy",
              "SHARE[,OPS]"},
             [&options](const std::string& text) { options.offload = parse_offload(text); });
}

void add_network_option(CommandFlags& app, CostOptions& options) {
  const Heading heading(app, kCostHeading);
  add_parsed(
      app,
      {"--network", "messages with bytes, which share links and NICs; --p2p is their latency",
       "bytes=SIZE,link=GBIT/S,per-node=N,between=GBIT/S,nic=GBIT/S,ranks-per-nic=N"},
      [&options](const std::string& text) { options.network = parse_network(text); });
}

void add_predict_options(CommandFlags& app, PredictOptions& options) {
  options.command = app.name();
  add_shape_options(app, options.shape);
  add_cost_options(app, options.cost);
  add_memory_options(app, options.memory);
  add_activation_options(app, options.moves);
  add_network_option(app, options.cost);
  add_repeated(
      app,
      {"--inject",
       "a fault: rank=R[,op=OP],WHAT, where WHAT is delay=TIME, slow=FACTOR, die, hang, "
       "wrong-size or garbage; may be repeated",
       "FAULT"},
      [&options](const std::string& text) { options.injections.push_back(parse_injection(text)); });
}

void add_export_options(CommandFlags& app, ExportOptions& exports) {
  const Heading heading(app, "Files to write");
  for (const traces::TimelineFormat& format : Registry<traces::TimelineFormat>::instance().all())
    app.add_option("--" + format.name, exports[format.name], format.summary)->type_name("FILE");
}

}  // namespace bubblescope::tools
