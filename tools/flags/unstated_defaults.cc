// Compares the defaults of commands with those of Megatron-LM.
#include "tools/flags/unstated_defaults.h"

#include "sim/ir/counted.h"
#include "tools/flags/framework_words.h"
#include "tools/print.h"

namespace bubblescope::tools {

namespace {

void note_one_pipeline(const CommandFlags& app, const ModelOptions& options) {
  if (!options.global_batch || app.count("--dp") > 0 || app.count("-m") > 0) return;
  print_message(
      "bubblescope: --dp 1 is assumed: the whole batch of {} goes through one pipeline; --dp "
      "divides it\n",
      counted(*options.global_batch, "sample"));
}

/// Megatron-LM takes no notice of what is recomputed unless it is told to recompute.
void note_recomputation(const CommandFlags& app, const PredictOptions& options) {
  if (!options.model.given() || !options.moves.recompute.empty()) return;
  const auto note = [](const char* given, const char* assumed) {
    print_message(
        "bubblescope: --recompute {} is assumed, of which {} says more; Megatron-LM recomputes "
        "nothing without --recompute-granularity {}\n",
        assumed, given, assumed);
  };
  if (!options.model.parallel.modules.empty()) note("--recompute-modules", "selective");
  if (app.count("--recompute-method") > 0) note("--recompute-method", "full");
}

UnstatedDefaults compare_with_megatron(const CommandFlags& app) {
  const auto given = [&](const char* name) { return names_flag(app.words(), name); };
  const bool says_reduction = app.count("--grad-reduction") > 0;
  UnstatedDefaults unstated;
  unstated.precision = app.count("--precision") == 0;
  unstated.sequence_parallel = !given("sequence-parallel");
  unstated.sharding = app.count("--zero") == 0;
  unstated.reduction = !says_reduction;
  unstated.gather =
      (!says_reduction || given("overlap-grad-reduce")) && !given("overlap-param-gather");
  // "bfloat16 requires gradient accumulation and all-reduce to be done in fp32" (arguments.py).
  if (app.count("--gradients") == 0)
    unstated.gradients = given("fp16") ? Gradients::kBf16 : Gradients::kFp32;
  return unstated;
}

void note_balanced_layers(const PredictOptions& options) {
  if (options.shape.ranks.value_or(1) == 1 || !options.shape.layout.empty() ||
      options.model.parallel.ends.any())
    return;
  print_message(
      "bubblescope: layers are divided by their times, while Megatron-LM gives every stage equally "
      "many; --first-layers, --last-layers or --layout say how many\n");
}

}  // namespace

void find_unstated_defaults(const CommandFlags& app, PredictOptions& options) {
  note_one_pipeline(app, options.model);
  note_recomputation(app, options);
  if (!options.model.given() || !has_megatron_words(app.words())) return;
  options.model.unstated = compare_with_megatron(app);
  note_balanced_layers(options);
}

}  // namespace bubblescope::tools
