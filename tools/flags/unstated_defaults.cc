// Compares the defaults of commands with those of Megatron-LM.
#include "tools/flags/unstated_defaults.h"

#include <string>
#include <vector>

#include "sim/ir/registry.h"
#include "sim/model/runtime.h"
#include "tools/flags/framework_words.h"
#include "tools/flags/words.h"
#include "tools/print.h"

namespace bubblescope::tools {

namespace {

void note_one_pipeline(const CommandFlags& app, const ModelOptions& options) {
  if (!options.global_batch || app.count("--dp") > 0 || app.count("-m") > 0) return;
  print_message(
      "bubblescope: --dp 1 is assumed: the whole batch of {} samples goes through one pipeline; "
      "--dp divides it\n",
      *options.global_batch);
}

/// Whether the numbers of ranks are lists, of which each may be above 1.
bool sweeps_ranks(const CommandFlags& app) { return app.knows("--gpus"); }

/// The features that Megatron-LM has only if told, by its flags, and the flags that turn them off
/// here.
std::vector<std::string> list_unstated(const CommandFlags& app, const ModelOptions& options) {
  const Parallelism& parallel = options.parallel;
  const RuntimeDef* const runtime = Registry<RuntimeDef>::instance().find(options.runtime);
  const auto given = [&](const char* name) { return names_flag(app.words(), name); };
  const bool has_copies = sweeps_ranks(app) || parallel.data > 1 || parallel.context > 1;
  std::vector<std::string> unstated;
  const auto add = [&](const std::string& theirs, const std::string& off) {
    unstated.push_back("--" + theirs + " (off with " + off + ")");
  };
  if (app.count("--precision") == 0) unstated.emplace_back("--bf16");
  const bool may_divide = sweeps_ranks(app) || parallel.tensor > 1;
  if (may_divide && parallel.sequence_parallel && !given("sequence-parallel"))
    add("sequence-parallel", "--no-sequence-parallel");
  const bool shards = runtime != nullptr && runtime->zero_stage > 0;
  if (has_copies && shards && app.count("--zero") == 0)
    add("use-distributed-optimizer", "--zero 0");
  if (has_copies && app.count("--grad-reduction") == 0)
    add("overlap-grad-reduce", "--grad-reduction serial");
  return unstated;
}

void note_megatron_defaults(const CommandFlags& app, const ModelOptions& options) {
  if (!options.given() || !has_megatron_words(app.words())) return;
  const std::vector<std::string> unstated = list_unstated(app, options);
  if (unstated.empty()) return;
  print_message("bubblescope: assumed, though Megatron-LM has {} off unless given: {}\n",
                unstated.size() == 1 ? "it" : "them", join(unstated, ", "));
}

void note_balanced_layers(const CommandFlags& app, const PredictOptions& options) {
  if (!options.model.given() || !has_megatron_words(app.words())) return;
  if (options.shape.ranks.value_or(1) == 1 || !options.shape.layout.empty() ||
      options.model.parallel.ends.any())
    return;
  print_message(
      "bubblescope: layers are divided by their times, while Megatron-LM gives every stage equally "
      "many; --first-layers, --last-layers or --layout say how many\n");
}

}  // namespace

void note_unstated_defaults(const CommandFlags& app, const PredictOptions& options) {
  note_one_pipeline(app, options.model);
  note_megatron_defaults(app, options.model);
  note_balanced_layers(app, options);
}

}  // namespace bubblescope::tools
