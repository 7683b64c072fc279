// Adds the flags of models, and warns about them.
#include "tools/flags/model_options.h"

#include "sim/model/model_parts.h"
#include "tools/flags/choice.h"
#include "tools/flags/command_flags.h"
#include "tools/flags/framework_names.h"
#include "tools/flags/heading.h"
#include "tools/flags/recompute_options.h"
#include "tools/flags/uneven_ends_options.h"

namespace bubblescope::tools {

namespace {

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
       "precision of gradients (bf16-lean: with 10 bytes of Adam's states per parameter; "
       "bf16-pure: with 16-bit moments and no master weights; default: the first of fp32, bf16 and "
       "bf16-lean that fits)"},
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
      choices_of(kMatrixTypes), [&options](MatrixType type) { options.matrices = type; },
      explain_precision);
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

void add_layer_options(CommandFlags& app, ModelOptions& options) {
  const Heading heading(app, kModelHeading);
  const InRange table(0.0, 1000.0);
  app.add_option("--embedding-layers", options.parallel.embedding_layers,
                 "weight of the embedding in the split, in layers (default: by its time)")
      ->check(table);
  app.add_option("--head-layers", options.parallel.head_layers,
                 "layers that the head counts as in the split (default: by its time)")
      ->check(table);
  add_uneven_ends_options(app, options.parallel.ends);
}

void add_explain_option(CommandFlags& app, ModelOptions& options) {
  const Heading heading(app, kModelHeading);
  app.add_flag("--explain", options.explain, "print every assumption (to stderr)");
}

void add_configuration_options(CommandFlags& app, ModelOptions& options) {
  add_common_options(app, options);
  add_layer_options(app, options);
  add_explain_option(app, options);
  const Heading heading(app, kModelHeading);
  add_modules_option(app, options.parallel.modules);
  add_recompute_method_option(app, options.recompute_method);
  add_recompute_layers_option(app, options.recompute_layers);
  app.add_option("--lengths", options.lengths_file,
                 "with --model, a file with the sequence length of every micro-batch, in tokens")
      ->type_name("FILE");
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

}  // namespace bubblescope::tools
