// Turns arguments into a model on devices.
#include "tools/flags/model_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "sim/model/head_alignment.h"
#include "sim/model/model_parts.h"
#include "tools/flags/bare_size.h"
#include "tools/flags/choice.h"
#include "tools/flags/command_flags.h"
#include "tools/flags/field_names.h"
#include "tools/flags/heading.h"
#include "tools/flags/named_devices.h"
#include "tools/flags/recompute_options.h"
#include "tools/flags/uneven_ends_options.h"
#include "tools/print.h"

namespace bubblescope::tools {

namespace {

/// Whether an assumption is a choice of the job, and no constant that errors were measured with.
bool states_how_a_job_runs(const std::string& assumption) {
  return assumption == "launch_blocking" || assumption == "iteration_graphs" ||
         assumption == "dispatch_once" || assumption == "flash_attention_2";
}

/// Replaces assumptions by those of flags, and lists the ones that differ from the runtime's or
/// the device's.
void replace_assumptions(ModelOnDevices& on, const ModelOptions& options) {
  const auto replace = [&on](const std::string& flag, const std::string& name, double value) {
    const CostAssumptions assumed = on.assumptions;
    const KernelRates rates = on.gpu.kernels;
    const double usual = assumed_value(on, name);
    assume(on, name, value);
    if (!states_how_a_job_runs(name) && !(on.assumptions == assumed && on.gpu.kernels == rates))
      on.replaced_assumptions.push_back({flag, name, usual});
  };
  const auto replace_if_given = [&](const char* flag, const char* name,
                                    std::optional<double> value) {
    if (value) replace(flag, name, *value);
  };
  replace_if_given("--tensor-exposed", "tensor_exposed", options.tensor_exposed);
  replace_if_given("--message-exposed", "message_exposed", options.message_exposed);
  replace_if_given("--accumulation-bytes", "accumulation_bytes", options.accumulation_bytes);
  for (const std::string& text : options.assumed) {
    const std::size_t equals = text.find('=');
    double value = 0;
    const char* end = text.data() + text.size();
    if (equals == std::string::npos ||
        std::from_chars(text.data() + equals + 1, end, value).ptr != end)
      throw Error("--assume " + text + ": write NAME=NUMBER, such as tensor_exposed=0.5");
    const std::string name = text.substr(0, equals);
    name_errors("--assume", [&] { replace("--assume " + name, name, value); });
    for (Gpu& gpu : on.rank_gpus) {
      std::swap(on.gpu, gpu);
      assume(on, name, value);
      std::swap(on.gpu, gpu);
    }
  }
}

/// Sets the assumptions of the runtime, then those of single flags.
void set_assumptions(ModelOnDevices& on, const ModelOptions& options) {
  const RuntimeDef runtime = find_runtime(options.runtime);
  on.runtime = runtime.name;
  on.assumptions = assumptions_on(runtime, on.gpu);
  on.parallel.zero_stage = options.zero_stage.value_or(runtime.zero_stage);
  on.parallel.pytorch = runtime.pytorch;
  on.parallel.logit_bytes = runtime.logit_bytes;
  on.assumptions.causal = !options.full_attention;
  on.assumptions.slowdown = options.slowdown;
  on.sources.push_back("runtime " + runtime.name + ": " + runtime.source);
  replace_assumptions(on, options);
}

/// Refuses 8-bit GEMMs on devices that have none.
void set_matrices(ModelOnDevices& on, MatrixType matrices) {
  on.matrices = matrices;
  on.parallel.fp8_inputs = matrices == MatrixType::kFp8;
  std::vector<Gpu> gpus = on.rank_gpus;
  gpus.push_back(on.gpu);
  if (matrices != MatrixType::kFp8 || std::all_of(gpus.begin(), gpus.end(), [](const Gpu& gpu) {
        return gpu.kernels.fp8_gain > 0;
      }))
    return;
  throw Error(Fault::kProblem, "--precision fp8: " + on.device +
                                   " has no 8-bit GEMMs; leave it out, or give a device that "
                                   "does, such as --gpu h100");
}

/// Parses "4GiB", or "5%" of `memory`.
Bytes parse_part(const std::string& text, Bytes memory) {
  const bool is_share = text.ends_with('%');
  Bytes part = 0;
  if (is_share) {
    const Millionths percent = parse_millionths(text.substr(0, text.size() - 1));
    part = static_cast<Bytes>(static_cast<double>(memory) * static_cast<double>(percent) / 1e8);
  } else {
    part = parse_bytes(text);
    warn_of_bare_size("--reserve-memory", text, "bytes", "GiB");
  }
  if (part < 0) throw Error(text + " is below zero; give 0 or more");
  if (part < memory) return part;
  throw Error(fmt::format("{} leaves nothing of the device's {:.1f} GiB; give less", text,
                          static_cast<double>(memory) / (1 << 30)));
}

void add_runtime_options(CommandFlags& app, ModelOptions& options) {
  app.add_option("--runtime", options.runtime,
                 "the framework: what it hides, fuses, shards and launches ('bubblescope list "
                 "runtimes', default megatron)")
      ->type_name("NAME");
  app.add_option("--assume", options.assumed,
                 "replaces an assumption by its name in --explain; may be repeated")
      ->type_name("NAME=VALUE");
}

/// Adds the model and its devices.
void add_device_options(CommandFlags& app, ModelOptions& options) {
  app.add_option("--model", options.model,
                 "costs and memory of a model: a name ('bubblescope list models') or a config.json")
      ->type_name("NAME|FILE");
  app.add_option("--gpu", options.gpu,
                 "the device: a name ('bubblescope list gpus', default h100) or a file of its own; "
                 "4xh100,4xa100 where the ranks of a pipeline differ")
      ->type_name("NAME|FILE");
  add_runtime_options(app, options);
  app.add_option("--gpus-per-node", options.per_node, "devices of a node (default: the device's)")
      ->check(InRange(1, 1024));
}

/// Adds how the model is divided, besides the numbers of ranks.
void add_split_options(CommandFlags& app, ModelOptions& options) {
  app.add_option("--zero", options.zero_stage,
                 "states sharded over data ranks: 0 none, 1 optimizer, 2 gradients, 3 weights "
                 "(default: the runtime's)")
      ->check(InRange(0, 3));
  app.add_option("--shard-size", options.parallel.shard_ranks,
                 "ranks over which --zero shards; groups of so many hold copies (hybrid sharding; "
                 "default: all of --dp times --cp)")
      ->check(InRange(1, 65'536));
  const InRange table(0.0, 1000.0);
  app.add_option("--embedding-layers", options.parallel.embedding_layers,
                 "weight of the embedding in the split, in layers (default: by its time)")
      ->check(table);
  app.add_option("--head-layers", options.parallel.head_layers,
                 "layers that the head counts as in the split (default: by its time)")
      ->check(table);
  add_uneven_ends_options(app, options.parallel.ends);
  app.add_flag("!--no-sequence-parallel", options.parallel.sequence_parallel,
               "norms and residuals whole on every tensor rank");
}

/// Adds what is assumed of compute and communication.
void add_assumption_options(CommandFlags& app, ModelOptions& options) {
  app.add_flag("--save-scores", options.save_scores, "save attention scores: no flash attention");
  app.accept_old_name("--keep-scores", "--save-scores");
  app.add_flag("--full-attention", options.full_attention, "attention that is not causal");
  app.add_option("--slowdown", options.slowdown,
                 "factor on all compute times, to calibrate against a measured step (default 1)")
      ->check(InRange(0.01, 100.0));
  add_parsed(app,
             {"--parts",
              "ops as parts on lanes (attention, network, collectives), and the order in which "
              "pairs interleave them; series: they do not",
              "series|dualpipe|megatron|braid|F.PART,B.PART,..."},
             [&options](const std::string& text) { options.parts = parse_model_parts(text); });
  app.add_option("--tensor-exposed", options.tensor_exposed,
                 "exposed fraction of the tensor ranks' collectives (default: the runtime's)")
      ->check(InRange(0.0, 1.0));
  app.add_option("--message-exposed", options.message_exposed,
                 "fraction of a message between pipeline ranks that blocks its sender (default: "
                 "the runtime's)")
      ->check(InRange(0.0, 1.0));
  app.add_option("--accumulation-bytes", options.accumulation_bytes,
                 "bytes moved per weight and micro-batch by a separate gradient-accumulation "
                 "kernel, such as 12 (default: the runtime's; 0: W's GEMMs accumulate)")
      ->check(InRange(0.0, 100.0));
}

void add_state_options(CommandFlags& app, ModelOptions& options) {
  app.add_option(
         "--reserve-memory", options.reserve_memory,
         "device memory reserved for fragmentation, besides the 2 GiB of driver and libraries "
         "that every rank counts: 4GiB, or 5% (default 0.5GiB)")
      ->type_name("SIZE|PERCENT");
  app.accept_old_name("--keep-free", "--reserve-memory");
  add_choice<Gradients>(
      app,
      {"--gradients",
       "precision of gradients (bf16-lean: also 10 bytes of Adam; default: the largest "
       "that fits)"},
      choices_of(kGradientFormats),
      [&options](Gradients gradients) { options.gradients = gradients; });
}

/// Adds --precision and --seq-length.
void add_precision_options(CommandFlags& app, ModelOptions& options) {
  const Heading heading(app, kModelHeading);
  add_choice<MatrixType>(
      app,
      {"--precision",
       "dtype of GEMMs with weights (default bf16); attention and the head have 16 bits"},
      choices_of(kMatrixTypes), [&options](MatrixType type) { options.matrices = type; });
  app.add_option("--seq-length", options.sequence, "tokens of a sequence (default: the model's)")
      ->check(InRange(1, 1 << 24));
}

/// Adds what every command with a model takes.
void add_common_options(CommandFlags& app, ModelOptions& options) {
  const Heading heading(app, kModelHeading);
  add_device_options(app, options);
  add_split_options(app, options);
  add_assumption_options(app, options);
  add_state_options(app, options);
  app.add_flag("--explain", options.explain, "print every assumption (to stderr)");
}

/// Adds the numbers of ranks, one value each.
void add_parallel_options(CommandFlags& app, ModelOptions& options) {
  const Heading heading(app, kModelHeading);
  const InRange ranks(1, 65'536);
  Parallelism& parallel = options.parallel;
  app.add_option("--tp,--tensor-model-parallel-size", parallel.tensor, "tensor-parallel ranks")
      ->check(ranks);
  app.add_option("--cp,--context-parallel-size", parallel.context, "context-parallel ranks")
      ->check(ranks);
  app.add_option("--ep,--expert-model-parallel-size", parallel.expert, "expert-parallel ranks")
      ->check(ranks);
  app.add_option("--etp,--expert-tensor-parallel-size", parallel.expert_tensor, kExpertTensorHelp)
      ->check(ranks);
  app.add_option("--dp", parallel.data, "data-parallel replicas")->check(ranks);
}

}  // namespace

void add_swept_model_options(CommandFlags& app, ModelOptions& options) {
  add_common_options(app, options);
  add_precision_options(app, options);
}

void add_configuration_options(CommandFlags& app, ModelOptions& options) {
  add_common_options(app, options);
  const Heading heading(app, kModelHeading);
  add_modules_option(app, options.parallel.modules);
  add_recompute_method_option(app, options.recompute_method);
  add_recompute_layers_option(app, options.recompute_layers);
  app.add_option("--lengths", options.lengths_file,
                 "with --model, a file with the sequence length of every micro-batch, in tokens");
  app.add_option("--global-batch-size,--global-batch", options.global_batch,
                 "samples of a step, instead of -m: -m x --dp x --micro-batch-size")
      ->check(InRange(std::int64_t{1}, std::int64_t{1} << 40));
  add_parallel_options(app, options);
}

void add_model_options(CommandFlags& app, ModelOptions& options) {
  add_configuration_options(app, options);
  add_precision_options(app, options);
  const Heading heading(app, kModelHeading);
  app.add_option("--micro-batch-size", options.parallel.micro_batch_size,
                 "samples of a micro-batch")
      ->check(InRange(1, 65'536));
}

void warn_without_model(const CommandFlags& app, const ModelOptions& options) {
  // The batch is divided among --dp pipelines in samples of --micro-batch-size, with or without a
  // model.
  if (!options.lengths_file.empty()) return;  // read_inputs() refuses it without a model
  if (!options.given() && !options.global_batch)
    warn_of_unused(app, kModelHeading, "without --model");
}

ModelOnDevices resolve(const ModelOptions& options, std::vector<std::int64_t> lengths) {
  ModelOnDevices on;
  set_model(on, options.model);
  on.device = set_gpus(on, options.gpu);
  on.name = options.model + " on " + on.device;
  if (options.per_node) {
    on.gpu.per_node = *options.per_node;
    for (Gpu& gpu : on.rank_gpus) gpu.per_node = *options.per_node;
  }
  name_errors("--reserve-memory",
              [&] { on.reserved_memory = parse_part(options.reserve_memory, on.gpu.memory); });
  on.parallel = options.parallel;
  on.parallel.gradients = options.gradients.value_or(Gradients::kFp32);
  on.parallel.sequence = options.sequence.value_or(on.model.sequence);
  if (!lengths.empty()) on.parallel.sequence = *std::max_element(lengths.begin(), lengths.end());
  on.sequence_lengths = std::move(lengths);
  on.parts = options.parts;
  set_assumptions(on, options);
  on.parallel.flash_attention =
      !options.save_scores && can_fuse_attention(on.model, on.parallel.pytorch);
  set_matrices(on, options.matrices);
  return on;
}

void note_heads(const ModelOnDevices& on) {
  const std::string text = describe_heads(on);
  if (!text.empty()) print_message("bubblescope: {}\n", text);
}

void print_assumptions(const ModelOnDevices& on) {
  for (const std::string& line : explain(on)) print_message("{}\n", name_flags(line));
}

}  // namespace bubblescope::tools
