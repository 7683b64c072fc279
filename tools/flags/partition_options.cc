// Turns arguments into partition options.
#include "tools/flags/partition_options.h"

#include <algorithm>
#include <limits>

#include "sim/ir/counted.h"
#include "sim/ir/error.h"
#include "sim/ir/number.h"
#include "tools/flags/bare_size.h"
#include "tools/flags/choice.h"
#include "tools/flags/command_flags.h"
#include "tools/flags/uneven_ends_options.h"
#include "tools/flags/words.h"
#include "traces/costs/megatron_layout.h"

namespace bubblescope::tools {

namespace {

constexpr std::int32_t kMaxWorkers = 1024;

/// Parses "1.25GB/s" into bytes per second.
Bytes parse_bandwidth(const std::string& text) {
  const std::size_t slash = text.rfind("/s");
  const bool has_unit = slash != text.npos && slash + 2 == text.size();
  const Bytes bytes = parse_bytes(text.substr(0, has_unit ? slash : text.size()));
  if (bytes <= 0) throw Error("'" + text + "' moves nothing; write a speed such as 1.25GB/s");
  return bytes;
}

/// Parses "4x2": 4 workers per machine, 2 machines.
std::vector<std::int32_t> parse_levels(const std::string& text) {
  std::vector<std::int32_t> levels;
  std::int64_t workers = 1;
  for (const std::string& part : split(text, 'x')) {
    const std::int32_t count = parse_number<std::int32_t>(part).value_or(0);
    if (count < 1 || count > kMaxWorkers)
      throw Error("'" + text +
                  "' is not a hierarchy; write 4x2 for 4 workers in each of 2 machines");
    levels.push_back(count);
    workers *= count;
    if (workers > kMaxWorkers)
      throw Error("'" + text + "' has more than " + counted(kMaxWorkers, "worker"));
  }
  return levels;
}

void add_method_options(CommandFlags& app, PartitionOptions& options) {
  add_choice<PartitionMethod>(
      app,
      {"--method", "pipedream with --workers, else minmax, the exact minimum of the bottleneck"},
      {{"pipedream", PartitionMethod::kPipedream},
       {"minmax", PartitionMethod::kMinMax},
       {"blocks", PartitionMethod::kBlocks},
       {"megatron", PartitionMethod::kMegatron}},
      [&options](PartitionMethod method) {
        options.method = method;
        options.method_is_given = true;
      });
  app.add_flag("--straight", options.straight, "pipedream: one worker per stage");
  app.add_flag("--transfers", options.counts_transfers,
               "pipedream: count the activations between stages too");
  add_uneven_ends_options(app, options.ends);
}

/// Parses "Et*32L", a layout of one stage.
StageLayers parse_layer_kinds(const std::string& text) {
  const LayerLayout layout = traces::parse_layout(text, "--layers");
  if (layout.size() > 1)
    throw Error("--layers '" + text + "' has stages, which are what is looked for; leave | out");
  return layout.front();
}

void add_layers_option(CommandFlags& app, PartitionOptions& options) {
  app.add_parsed(
         "--layers",
         [&options](const std::string& text) { options.layers = parse_layer_kinds(text); },
         "what the profile's layers are, such as Et*32L: embedding, 32 transformer layers, loss; "
         "the stages are then written as Megatron's layout")
      ->type_name("LAYERS");
}

void add_cost_file_options(CommandFlags& app, PartitionOptions& options) {
  app.add_option("--schedule", options.schedule,
                 "schedule whose micro-batches in flight determine memory (default 1f1b)")
      ->type_name("NAME");
  app.add_option("-m,--microbatches", options.microbatches,
                 "micro-batches of a step under that schedule (default: twice the stages)")
      ->check(InRange(1, 1 << 16));
  app.add_option("--parameter-copies", options.parameter_copies,
                 "what a worker holds per parameter byte (default 4: weights, gradients, Adam)")
      ->check(InRange(0.0, 1000.0));
  app.add_option(
         "--weight-grad-share", options.weight_grad_share,
         "fraction of a whole backward that is the weight gradient, for -o (default 0.5; the "
         "backwards of a --costs file stay whole unless given)")
      ->check(InRange(0.0, 1.0));
}

}  // namespace

std::int32_t PartitionOptions::worker_count() const {
  if (workers) return *workers;
  std::int32_t count = 1;
  for (const std::int32_t level : levels) count *= level;
  return levels.empty() ? stages.value_or(1) : count;
}

std::vector<schedules::WorkerLevel> PartitionOptions::worker_levels() const {
  std::vector<schedules::WorkerLevel> result;
  const std::vector<std::int32_t> sizes =
      levels.empty() ? std::vector<std::int32_t>{worker_count()} : levels;
  for (std::size_t level = 0; level < sizes.size(); ++level) {
    const Bytes speed = bytes_per_second.empty()       ? std::numeric_limits<Bytes>::max()
                        : bytes_per_second.size() == 1 ? bytes_per_second[0]
                                                       : bytes_per_second[level];
    result.push_back({sizes[level], speed});
  }
  return result;
}

namespace {

void expect_one_count(const PartitionOptions& options) {
  if (!options.workers && !options.stages && options.levels.empty())
    throw Error("say how many: --workers 4 for stages and replicas, --stages 4 for stages alone");
  if (options.stages && (options.workers || !options.levels.empty()))
    throw Error("--stages and --workers are two ways to ask: leave one out");
}

void check_levels(const PartitionOptions& options) {
  std::int32_t of_levels = 1;
  for (const std::int32_t level : options.levels) of_levels *= level;
  if (options.workers && !options.levels.empty() && of_levels != *options.workers)
    throw Error("--levels has " + counted(of_levels, "worker") + ", --workers says " +
                std::to_string(*options.workers) + "; leave --workers out");
  const std::size_t levels = std::max<std::size_t>(options.levels.size(), 1);
  const std::size_t speeds = options.bytes_per_second.size();
  if (speeds > 1 && speeds != levels)
    throw Error("--bandwidth has " + counted(static_cast<std::int64_t>(speeds), "entry") + " for " +
                counted(static_cast<std::int64_t>(levels), "level") +
                "; give one, or one per level");
}

void expect_flags_of_method(const PartitionOptions& options) {
  const bool replicates = options.method == PartitionMethod::kPipedream;
  if (!replicates && (options.straight || options.counts_transfers || !options.levels.empty()))
    throw Error("--straight, --transfers and --levels belong to --method pipedream");
  const UnevenEnds& ends = options.ends;
  if (ends.any() && options.method != PartitionMethod::kMegatron)
    throw Error("--first-layers, --last-layers and --account-for-... belong to --method megatron");
  expect_one_rule(ends);
  if (options.memory && !replicates && options.method != PartitionMethod::kMinMax)
    throw Error("--memory belongs to --method pipedream or minmax");
}

}  // namespace

PartitionOptions choose_method(PartitionOptions options) {
  expect_one_count(options);
  const bool has_workers = options.workers || !options.levels.empty();
  if (!options.method_is_given)
    options.method = has_workers ? PartitionMethod::kPipedream : PartitionMethod::kMinMax;
  if (options.method == PartitionMethod::kPipedream && options.stages) options.straight = true;
  check_levels(options);
  expect_flags_of_method(options);
  return options;
}

void add_partition_options(CommandFlags& app, PartitionOptions& options) {
  app.add_option("PROFILE", options.profile,
                 "measured layers: a PipeDream or DAPPLE graph file, an Aceso csv, or a "
                 "--costs file")
      ->required();
  const InRange count(1, kMaxWorkers);
  app.add_option("--stages", options.stages, "stages, one worker each")->check(count);
  app.add_option("--workers", options.workers, "workers, in as many stages as are best")
      ->check(count);
  add_parsed(app, {"--levels", "a hierarchy: 4x2 is 4 workers in each of 2 machines", "AxB"},
             [&options](const std::string& text) { options.levels = parse_levels(text); });
  add_parsed(app,
             {"--bandwidth",
              "bandwidth between workers, such as 1.25GB/s (commas: per level, the innermost "
              "first; not limited unless given)",
              "SPEED"},
             [&options](const std::string& text) {
               options.bytes_per_second.clear();
               for (const std::string& part : split(text, ',')) {
                 options.bytes_per_second.push_back(parse_bandwidth(part));
                 warn_of_bare_size("--bandwidth", part, "bytes per second", "GB/s");
               }
             });
  app.add_option("--repeat-layers", options.repeats,
                 "layers that the enc- and dec- rows of an Aceso profile represent")
      ->check(InRange(1, 10'000));
  add_parsed(app, {"--memory", "what one worker can hold, such as 16GB", "SIZE"},
             [&options](const std::string& text) {
               options.memory = parse_bytes(text);
               options.memory_text = text;
               warn_of_bare_size("--memory", text, "bytes", "GB");
             });
  add_layers_option(app, options);
  add_method_options(app, options);
  add_cost_file_options(app, options);
}

}  // namespace bubblescope::tools
