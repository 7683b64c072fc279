// argv -> partition options.
#include "tools/partition_options.h"

#include <algorithm>
#include <limits>

#include "sim/ir/error.h"
#include "tools/choice.h"

namespace bubblescope {

namespace {

constexpr std::int32_t kMostWorkers = 1024;

/// "1.25GB/s": bytes per second.
Bytes parse_bandwidth(const std::string& text) {
  const std::size_t slash = text.rfind("/s");
  const bool has_unit = slash != text.npos && slash + 2 == text.size();
  const Bytes bytes = parse_bytes(text.substr(0, has_unit ? slash : text.size()));
  if (bytes <= 0) throw Error("'" + text + "' moves nothing; write a speed such as 1.25GB/s");
  return bytes;
}

/// "4x2": 4 workers per machine, 2 machines.
std::vector<std::int32_t> parse_levels(const std::string& text) {
  std::vector<std::int32_t> levels;
  std::int64_t workers = 1;
  for (const std::string& part : CLI::detail::split(text, 'x')) {
    std::int32_t count = 0;
    if (!CLI::detail::lexical_cast(part, count) || count < 1 || count > kMostWorkers)
      throw Error("'" + text + "' is no hierarchy; write 4x2 for 4 workers in each of 2 machines");
    levels.push_back(count);
    workers *= count;
    if (workers > kMostWorkers)
      throw Error("'" + text + "' has more than " + std::to_string(kMostWorkers) + " workers");
  }
  return levels;
}

void add_method_options(CLI::App& app, PartitionOptions& options) {
  add_choice<PartitionMethod>(
      app, {"--method", "pipedream with --workers, else minmax, the exact least bottleneck"},
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
  const CLI::Range layers(0, 100'000);
  app.add_option("--first-layers", options.ends.first, "megatron: layers of the first stage")
      ->check(layers);
  app.add_option("--last-layers", options.ends.last, "megatron: layers of the last stage")
      ->check(layers);
  app.add_flag("--account-for-embedding", options.ends.counts_embedding,
               "megatron: the embedding stands for a layer of the first stage");
  app.add_flag("--account-for-loss", options.ends.counts_loss,
               "megatron: the loss stands for a layer of the last stage");
}

void add_cost_file_options(CLI::App& app, PartitionOptions& options) {
  app.add_option("--schedule", options.schedule,
                 "whose micro-batches in flight the memory is counted for (default 1f1b)")
      ->type_name("NAME");
  app.add_option("-m,--microbatches", options.microbatches,
                 "micro-batches of its step (default: twice the stages)")
      ->check(CLI::Range(1, 1 << 16));
  app.add_option("--parameter-copies", options.parameter_copies,
                 "what a worker holds per parameter byte (default 4: weights, gradients, Adam)")
      ->check(CLI::Range(0.0, 1000.0));
  app.add_option("--weight-grad-share", options.weight_grad_share,
                 "how much of a backward is the weight gradient, for -o (default 0.5)")
      ->check(CLI::Range(0.0, 1.0));
}

}  // namespace

std::int32_t PartitionOptions::worker_count() const {
  if (workers) return *workers;
  std::int32_t count = 1;
  for (const std::int32_t level : levels) count *= level;
  return levels.empty() ? stages.value_or(1) : count;
}

std::vector<WorkerLevel> PartitionOptions::worker_levels() const {
  std::vector<WorkerLevel> result;
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

void PartitionOptions::expect_sound() {
  if (!workers && !stages && levels.empty())
    throw Error("say how many: --workers 4 for stages and replicas, --stages 4 for stages alone");
  if (!method_is_given)
    method = workers || !levels.empty() ? PartitionMethod::kPipedream : PartitionMethod::kMinMax;
  const bool replicates = method == PartitionMethod::kPipedream;
  if (stages && (workers || !levels.empty()))
    throw Error("--stages and --workers are two ways to ask: leave one out");
  if (replicates && stages) straight = true;
  std::int32_t of_levels = 1;
  for (const std::int32_t level : levels) of_levels *= level;
  if (workers && !levels.empty() && of_levels != *workers)
    throw Error("--levels has " + std::to_string(of_levels) + " workers, --workers says " +
                std::to_string(*workers) + "; leave --workers out");
  const std::size_t level_count = std::max<std::size_t>(levels.size(), 1);
  if (bytes_per_second.size() > 1 && bytes_per_second.size() != level_count)
    throw Error("--bandwidth has " + std::to_string(bytes_per_second.size()) + " entries for " +
                std::to_string(level_count) + " level(s); give one, or one per level");
  if (!replicates && (straight || counts_transfers || !levels.empty()))
    throw Error("--straight, --transfers and --levels belong to --method pipedream");
  const bool has_ends = ends.first || ends.last || ends.counts_embedding || ends.counts_loss;
  if (has_ends && method != PartitionMethod::kMegatron)
    throw Error("--first-layers, --last-layers and --account-for-... belong to --method megatron");
  if ((ends.first || ends.last) && (ends.counts_embedding || ends.counts_loss))
    throw Error("--first-layers and --last-layers exclude --account-for-...; leave one out");
  const bool limits = replicates || method == PartitionMethod::kMinMax;
  if (memory && !limits) throw Error("--memory belongs to --method pipedream or minmax");
}

void add_partition_options(CLI::App& app, PartitionOptions& options) {
  app.add_option("PROFILE", options.profile,
                 "measured layers: a PipeDream or DAPPLE graph file, or a --costs file")
      ->required();
  const CLI::Range count(1, kMostWorkers);
  app.add_option("--stages", options.stages, "stages, one worker each")->check(count);
  app.add_option("--workers", options.workers, "workers, in as many stages as are best")
      ->check(count);
  add_parsed(app, {"--levels", "a hierarchy: 4x2 is 4 workers in each of 2 machines", "AxB"},
             [&options](const std::string& text) { options.levels = parse_levels(text); });
  add_parsed(app,
             {"--bandwidth",
              "between workers, such as 1.25GB/s (commas: per level, the innermost "
              "first; not limited unless given)",
              "SPEED"},
             [&options](const std::string& text) {
               options.bytes_per_second.clear();
               for (const std::string& part : CLI::detail::split(text, ','))
                 options.bytes_per_second.push_back(parse_bandwidth(part));
             });
  add_parsed(app, {"--memory", "what one worker can hold, such as 16GB", "SIZE"},
             [&options](const std::string& text) { options.memory = parse_bytes(text); });
  add_method_options(app, options);
  add_cost_file_options(app, options);
}

}  // namespace bubblescope
