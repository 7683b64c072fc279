// Turns arguments into run options.
#include "tools/flags/run_options.h"

#include <algorithm>

#include "exec/gpu/host/device_backend.h"
#include "tools/command.h"
#include "tools/errors.h"
#include "tools/flags/choice.h"
#include "tools/flags/command_flags.h"
#include "tools/flags/heading.h"

namespace bubblescope::tools {

namespace {

constexpr const char* kRunningHeading = "Running";
constexpr const char* kTrainingHeading = "The transformer of --work transformer";
constexpr const char* kDeviceHeading = "GPUs";

const Choices<WorkKind> kWorks{{"sleep", WorkKind::kSleep},
                               {"spin", WorkKind::kSpin},
                               {"transformer", WorkKind::kTransformer}};

/// Adds what a command with a model adds for both.
void add_size_options(CommandFlags& app, RunOptions& run) {
  const Heading heading(app, kTrainingHeading);
  const InRange size(1, kMaxTrainedSize);
  exec::TransformerShape& model = run.training.model;
  app.add_option("--seq-length", model.sequence, "tokens of a sequence")->check(size);
  app.add_option("--micro-batch-size", model.batch, "sequences of a micro-batch")->check(size);
  add_choice<exec::Precision>(
      app, {"--precision", "dtype of the transformer"},
      {{"fp32", exec::Precision::kFloat32}, {"bf16", exec::Precision::kBfloat16}},
      [&run](exec::Precision precision) { set_precision(run, precision); });
}

void add_training_options(CommandFlags& app, RunOptions& run) {
  const Heading heading(app, kTrainingHeading);
  exec::TrainingOptions& options = run.training;
  const InRange size(1, kMaxTrainedSize);
  exec::TransformerShape& model = options.model;
  app.add_option("--hidden-size", model.width, "width")->check(size);
  app.add_option("--num-attention-heads", model.heads, "heads")->check(size);
  app.add_option("--vocab-size", model.vocabulary, "vocabulary")->check(InRange(2, 1 << 20));
  app.add_option("--layers-per-stage", model.blocks_per_stage, "blocks of a stage")
      ->check(InRange(1, 1024));
  app.add_option("--seed", options.seed, "seed of weights and data");
  using Kind = exec::OptimizerOptions::Kind;
  add_choice<Kind>(app, {"--training-optimizer", "optimizer of the training"},
                   {{"sgd", Kind::kSgd}, {"adam", Kind::kAdam}},
                   [&options](Kind kind) { options.optimizer = exec::usual_optimizer(kind); });
  app.add_flag("!--no-verify", run.verification,
               "skip verification, which trains again on one thread and compares gradients");
  app.accept_old_name("--no-proof", "--no-verify");
}

void add_device_options(CommandFlags& app, RunOptions& run) {
  exec::DeviceOptions& options = run.device;
  const Heading heading(app, kDeviceHeading);
  add_choice<exec::Share>(app, {"--share", "ranks of one device get partitions of it, or share it"},
                          {{"green", exec::Share::kGreen}, {"streams", exec::Share::kStreams}},
                          [&options](exec::Share share) { options.share = share; });
  add_choice<exec::Attention>(
      app, {"--attention", "attention algorithm of the transformer"},
      {{"softmax", exec::Attention::kSoftmax}, {"flash", exec::Attention::kFlash}},
      [&options](exec::Attention attention) { options.attention = attention; });
  add_choice<exec::Epilogue>(
      app, {"--epilogue", "GELU fused into the GEMM before it (default with bf16), or separate"},
      {{"fused", exec::Epilogue::kFused}, {"separate", exec::Epilogue::kSeparate}},
      [&options](exec::Epilogue epilogue) { options.epilogue = epilogue; });
  app.add_flag("--graph", options.graph, "launch each step as one CUDA graph");
}

void add_execution_options(CommandFlags& app, RunOptions& options) {
  const Heading heading(app, kRunningHeading);
  app.add_option("--backend", options.backend, "what runs it ('bubblescope list backends')")
      ->type_name("NAME");
  add_choice<WorkKind>(
      app, {"--work", "what an op does: sleep or spin for its cost, or train a transformer"},
      kWorks, [&options](WorkKind work) { options.work = work; });
  app.add_option("--steps", options.steps, "measured steps; the one of median length is reported")
      ->check(InRange(1, 1'000'000));
  app.add_option("--warmup", options.warmup, "steps before them that are not measured")
      ->check(InRange(0, 1'000'000));
  add_parsed(app, {"--timeout", "abort when no op has ended for this long (default 30 s)"},
             [&options](const std::string& text) { options.timeout = parse_duration(text); });
}

}  // namespace

void set_precision(RunOptions& run, exec::Precision precision) {
  run.training.model.precision = precision;
  run.device.precision = precision;
}

void add_run_options(CommandFlags& app, RunOptions& options, RunFlags flags) {
  add_execution_options(app, options);
  if (flags.has_sizes) add_size_options(app, options);
  add_training_options(app, options);
  add_device_options(app, options);
}

void choose_measured_work(const CommandFlags& app, RunOptions& options) {
  constexpr Nanos kWarmup = 2'000'000'000;
  constexpr std::int32_t kMinSteps = 8;
  if (options.work == WorkKind::kSleep) return;
  if (app.count("--warmup") == 0) {
    options.warmup = std::max(options.warmup, 2);  // a GPU captures its graph in the second step
    options.warmup_time = kWarmup;
  }
  if (app.count("--steps") == 0) options.steps = std::max(options.steps, kMinSteps);
  if (options.work != WorkKind::kTransformer) return;
  for (const char* const size : {"--hidden-size", "--num-attention-heads", "--seq-length",
                                 "--micro-batch-size", "--vocab-size", "--layers-per-stage"})
    if (app.count(size) > 0) return;
  exec::TransformerShape& model = options.training.model;
  model.width = 256;
  model.heads = 4;
  model.sequence = 128;
}

void warn_of_unused_run_options(const CommandFlags& app, const RunOptions& options,
                                bool costs_given) {
  if (options.backend.empty()) {
    for (const char* heading : {kRunningHeading, kTrainingHeading, kDeviceHeading})
      warn_of_unused(app, heading, "without --backend");
    return;
  }
  if (options.work == WorkKind::kTransformer && costs_given)
    print_error(
        "--f and other costs change nothing with --work transformer, whose ops take their real "
        "time");
  if (options.work != WorkKind::kTransformer)
    warn_of_unused(app, kTrainingHeading, "without --work transformer");
  if (exec::find_device_backend(options.backend) == nullptr)
    warn_of_unused(app, kDeviceHeading, "on the backend " + options.backend);
}

std::string to_string(WorkKind work) {
  for (const auto& [name, kind] : kWorks)
    if (kind == work) return name;
  return "?";
}

}  // namespace bubblescope::tools
