// partition: assigns a model's layers to stages and replicas.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/ir/bytes_text.h"
#include "sim/ir/counted.h"
#include "sim/model/megatron_counts.h"
#include "tools/commands/partition_costs.h"
#include "tools/commands/partition_report.h"
#include "tools/flags/command_flags.h"
#include "tools/flags/output_format.h"
#include "tools/flags/partition_options.h"
#include "tools/inputs/predict.h"
#include "tools/print.h"
#include "tools/terminal.h"
#include "traces/costs/model_profile.h"

namespace bubblescope::tools {

namespace {

constexpr const char* kPartitionExample =
    "example: PipeDream's plan for 4 workers, and a pipeline of 4 stages timed under 1F1B\n"
    "  bubblescope partition vgg16.txt --workers 4 --bandwidth 1.25GB/s\n"
    "  bubblescope partition vgg16.txt --stages 4 --bandwidth 1.25GB/s -o costs.json\n"
    "  bubblescope simulate 1f1b --pp 4 -m 8 --costs costs.json\n"
    "example: Megatron-LM's arguments for a transformer whose layers are a cost file's stages\n"
    "  bubblescope partition layers.json --stages 4 --layers Et*32L --format megatron\n";

void expect_enough_layers(const LayerGraph& graph, std::int32_t stages) {
  if (graph.size() < stages)
    throw Error(Fault::kProblem,
                fmt::format("{} has {}, which cannot fill {}; ask for fewer", graph.source,
                            counted(graph.size(), "layer"), counted(stages, "stage")));
}

/// The micro-batches that each rank of the schedule holds at its peak, with one stage per rank.
std::vector<std::int32_t> in_flight_of(const std::string& name, std::int32_t stages,
                                       std::int32_t microbatches) {
  PredictOptions flags;
  flags.shape.ranks = stages;
  flags.shape.microbatches = microbatches;
  const TimedStep step = predict_timed_step(name, PredictInputs(std::move(flags)));
  if (step.schedule->rank_of_stage != loop_placement(stages, 1))
    throw Error(
        fmt::format("--schedule {} has not one stage per rank; name one that has, such as "
                    "1f1b",
                    name));
  std::vector<std::int32_t> held;
  for (const RankReport& rank : step.report.ranks)
    held.push_back(static_cast<std::int32_t>(rank.peak.activations));
  return held;
}

[[noreturn]] void refuse_memory(const PartitionOptions& options) {
  throw Error(Fault::kProblem,
              fmt::format("no partition fits into --memory {} per worker; give more memory or more "
                          "workers",
                          options.memory_text));
}

schedules::Partition plan_stages(const LayerGraph& graph, const PartitionOptions& options) {
  const std::int32_t stages = options.stage_count();
  switch (options.method) {
    case PartitionMethod::kPipedream: {
      if (options.straight) expect_enough_layers(graph, options.worker_count());
      const schedules::ReplicationRequest request{options.worker_levels(), options.straight,
                                                  options.counts_transfers, options.memory};
      std::optional<schedules::Partition> partition = schedules::plan_replicated(graph, request);
      if (!partition) refuse_memory(options);
      return std::move(*partition);
    }
    case PartitionMethod::kMinMax: {
      expect_enough_layers(graph, stages);
      std::optional<schedules::StageMemory> memory;
      if (options.memory)
        memory = {in_flight_of(options.schedule, stages, options.microbatch_count()),
                  options.parameter_copies, *options.memory};
      std::optional<schedules::Partition> partition =
          schedules::min_bottleneck(graph, stages, memory);
      if (!partition) refuse_memory(options);
      return std::move(*partition);
    }
    case PartitionMethod::kBlocks:
      expect_enough_layers(graph, stages);
      return schedules::make_torchgpipe_partition(graph, stages);
    case PartitionMethod::kMegatron:
      expect_enough_layers(graph, stages);
      return schedules::partition_by_counts(
          graph, compute_megatron_counts(graph.size(), stages, options.ends));
  }
  return {};
}

/// Reports the defaults that replace flags that were not given.
void report_partition_defaults(const LayerGraph& graph, const PartitionOptions& options) {
  const bool alone = options.repeats == 1 &&
                     std::any_of(graph.layers.begin(), graph.layers.end(), [](const Layer& layer) {
                       return layer.name.starts_with("enc-") || layer.name.starts_with("dec-");
                     });
  if (alone)
    print_message(
        "bubblescope: {} has the operators of one layer, which is taken once; "
        "--repeat-layers says how many there are\n",
        graph.source);
  if (options.method == PartitionMethod::kPipedream && options.worker_count() > 1 &&
      options.bytes_per_second.empty())
    print_message(
        "bubblescope: without --bandwidth, gradient reductions and messages take no time\n");
}

PartitionPlan plan_for(const LayerGraph& graph, const PartitionOptions& options) {
  PartitionPlan planned{graph, plan_stages(graph, options), {}};
  const std::vector<schedules::PartitionStage>& stages = planned.partition.stages;
  schedules::StageMemory memory{schedules::in_flight(planned.partition), 1, 0};
  if (options.method != PartitionMethod::kPipedream)
    memory = {in_flight_of(options.schedule, static_cast<std::int32_t>(stages.size()),
                           options.microbatch_count()),
              options.parameter_copies, 0};
  else  // it keeps the weights of every micro-batch in flight
    for (const schedules::PartitionStage& stage : stages)
      planned.bytes.push_back(memory.in_flight[planned.bytes.size()] *
                              (stage.parameters + stage.activations));
  while (planned.bytes.size() < stages.size())
    planned.bytes.push_back(held(stages[planned.bytes.size()], planned.bytes.size(), memory));
  return planned;
}

/// Reports flags that this method, or this output, has no use for.
void warn_of_unused_partition_flags(const CommandFlags& app, const PartitionOptions& options) {
  const bool writes_costs = app.count("-o") > 0;
  if (options.method == PartitionMethod::kPipedream)
    for (const char* flag : {"--schedule", "-m", "--parameter-copies"})
      if (app.count(flag) > 0 && !(writes_costs && flag == std::string("--parameter-copies")))
        print_message(
            "bubblescope: {} changes nothing: --method pipedream keeps the weights of all "
            "micro-batches in flight, whatever the schedule\n",
            flag);
  if (app.count("--weight-grad-share") > 0 && !writes_costs)
    print_message(
        "bubblescope: --weight-grad-share changes nothing: it splits the backwards of the written "
        "costs; give -o\n");
}

/// Applies the rule of --transfers to the slowest link.
void warn_of_slow_messages(const schedules::Partition& partition, const PartitionOptions& options) {
  if (options.bytes_per_second.empty()) return;
  const Bytes speed =
      *std::min_element(options.bytes_per_second.begin(), options.bytes_per_second.end());
  const std::vector<schedules::PartitionStage>& stages = partition.stages;
  for (std::size_t at = 0; at + 1 < stages.size(); ++at) {
    const Nanos message =
        schedules::compute_transfer_time(stages[at].output, speed, stages[at + 1].replicas);
    if (message <= partition.period) continue;
    print_message(
        "bubblescope: the messages after stage {} take {:.3f} ms per micro-batch, the "
        "slowest stage {:.3f} ms: the links are the bottleneck{}\n",
        at, static_cast<double>(message) / 1e6, static_cast<double>(partition.period) / 1e6,
        options.method == PartitionMethod::kPipedream && !options.counts_transfers
            ? "; --transfers counts them"
            : "; split elsewhere or give more bandwidth");
  }
}

}  // namespace

int run_partition(const Arguments& arguments) {
  CommandFlags app{"Cut a model's layers into stages and replicas", "bubblescope partition"};
  PartitionOptions options;
  OutputFormat format = OutputFormat::kText;
  std::optional<std::string> output;
  add_partition_options(app, options);
  add_format_option(app, format,
                    {OutputFormat::kText, OutputFormat::kJson, OutputFormat::kCsv,
                     OutputFormat::kMegatron, OutputFormat::kTorchtitan});
  app.add_option("-o,--output", output, "write the stages as a --costs file")->type_name("FILE");
  app.footer(kPartitionExample);
  if (!app.parse(arguments)) return 0;
  options = choose_method(std::move(options));
  if (!options.layers && (format == OutputFormat::kMegatron || format == OutputFormat::kTorchtitan))
    throw Error("--format " + name_of(kOutputFormats, format) +
                " needs to know what the layers are; give --layers");
  const LayerGraph graph = traces::read_model_profile(options.profile, options.repeats);
  if (graph.costs) report_uncounted_costs(*graph.costs, options);
  report_partition_defaults(graph, options);
  warn_of_unused_partition_flags(app, options);
  PartitionPlan planned = plan_for(graph, options);
  if (options.layers) planned.layout = find_layout(planned, *options.layers);
  warn_of_slow_messages(planned.partition, options);
  if (output) {
    const PartitionCosts costs = write_partition_costs(planned, options);
    for (const std::string& note : costs.notes) print_message("bubblescope: {}\n", note);
    traces::write_file(*output, costs.text);
    if (*output != "-") print_message("wrote {}\n", *output);
  }
  if (output == "-") return 0;
  print_result(write_partition(planned, format), format);
  return 0;
}

}  // namespace bubblescope::tools
