// Writes partitions.
#include "tools/commands/partition_report.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "sim/ir/counted.h"
#include "sim/ir/error.h"
#include "tools/flags/output_format.h"
#include "traces/costs/megatron_layout.h"
#include "traces/json/json_writer.h"
#include "traces/plans/framework_layers.h"

namespace bubblescope::tools {

namespace {

double milliseconds(Nanos time) { return static_cast<double>(time) / 1e6; }
double megabytes(Bytes bytes) { return static_cast<double>(bytes) / 1e6; }

Nanos whole_time(const LayerGraph& graph) {
  Nanos time = 0;
  for (const Layer& layer : graph.layers) time += layer.time();
  return time;
}

double speedup(const PartitionPlan& plan) {
  const Nanos period = plan.partition.period;
  return period == 0 ? 1
                     : static_cast<double>(whole_time(plan.graph)) / static_cast<double>(period);
}

/// A stage with the numbers of its first and last layer in pipeline order, which in a graph with
/// branches may differ from the order of the file.
struct Row {
  const schedules::PartitionStage& stage;
  Bytes bytes = 0;
  std::size_t first = 0;
  std::size_t last = 0;
};

std::vector<Row> rows_of(const PartitionPlan& plan) {
  std::vector<Row> rows;
  std::size_t next = 0;
  for (const schedules::PartitionStage& stage : plan.partition.stages) {
    rows.push_back({stage, plan.bytes[rows.size()], next, next + stage.layers.size() - 1});
    next += stage.layers.size();
  }
  return rows;
}

const std::string& name_layer(const PartitionPlan& plan, std::int32_t layer) {
  return plan.graph.layers[static_cast<std::size_t>(layer)].name;
}

std::string text_of(const PartitionPlan& plan) {
  std::string out = fmt::format(
      "period    {:.3f} ms  {:.3f} ms on one worker, {:.2f} times as fast\n",
      milliseconds(plan.partition.period), milliseconds(whole_time(plan.graph)), speedup(plan));
  out += "\nstage    layers  replicas   time ms  params MB    held MB\n";
  std::size_t number = 0;
  for (const Row& row : rows_of(plan))
    fmt::format_to(
        std::back_inserter(out), "{:>5}  {:>8}  {:>8}  {:>8.3f}  {:>9.1f}  {:>9.1f}  {}\n",
        number++, fmt::format("{}..{}", row.first, row.last), row.stage.replicas,
        milliseconds(row.stage.time), megabytes(row.stage.parameters), megabytes(row.bytes),
        fmt::format("{} … {}", name_layer(plan, row.stage.layers.front()),
                    name_layer(plan, row.stage.layers.back())));
  if (plan.layout) out += fmt::format("\nlayout    {}\n", traces::to_string(*plan.layout));
  return out;
}

std::string csv_of(const PartitionPlan& plan) {
  std::string out = "stage,first,last,replicas,time_ns,bytes,parameter_bytes,activation_bytes\n";
  std::size_t number = 0;
  for (const Row& row : rows_of(plan))
    fmt::format_to(std::back_inserter(out), "{},{},{},{},{},{},{},{}\n", number++, row.first,
                   row.last, row.stage.replicas, row.stage.time, row.bytes, row.stage.parameters,
                   row.stage.activations);
  return out;
}

std::string json_of(const PartitionPlan& plan) {
  std::string out;
  traces::JsonWriter json(out);
  json.begin_object().member("format", "bubblescope-partition/1");
  json.member("period_ns", plan.partition.period).member("one_worker_ns", whole_time(plan.graph));
  json.member("speedup", speedup(plan)).line(1).key("stages").begin_array();
  for (const Row& row : rows_of(plan)) {
    json.line(2).begin_object().member("first", row.first).member("last", row.last);
    json.member("replicas", row.stage.replicas).member("time_ns", row.stage.time);
    json.member("bytes", row.bytes).line(3).member("parameter_bytes", row.stage.parameters);
    json.member("activation_bytes", row.stage.activations).key("layers").begin_array();
    for (const std::int32_t layer : row.stage.layers) json.value(name_layer(plan, layer));
    json.end_array().end_object();
  }
  json.end_array();
  if (plan.layout) json.line(1).member("layout", traces::to_string(*plan.layout));
  json.end_object();
  return out + '\n';
}

std::string megatron_of(const LayerLayout& layout) {
  const auto ranks = static_cast<std::int32_t>(layout.size());
  const std::string layers = traces::write_megatron_layers(layout, ranks);
  return fmt::format("--pipeline-model-parallel-size {}{}{}\n", ranks, layers.empty() ? "" : " ",
                     layers);
}

std::string torchtitan_of(const LayerLayout& layout) {
  const auto ranks = static_cast<std::int32_t>(layout.size());
  return fmt::format("[parallelism]\npipeline_parallel_degree = {}\n{}", ranks,
                     traces::write_torchtitan_layers(layout, ranks, 1));
}

}  // namespace

LayerLayout find_layout(const PartitionPlan& plan, const StageLayers& kinds) {
  const std::int32_t count =
      kinds.embeddings + kinds.transformers + kinds.predictions + kinds.losses;
  if (plan.graph.size() != count)
    throw Error(fmt::format("--layers names {}, but {} has {}", counted(count, "layer"),
                            plan.graph.source, plan.graph.size()));
  LayerLayout layout;
  std::int32_t next = 0;
  for (const schedules::PartitionStage& stage : plan.partition.stages) {
    if (stage.replicas > 1)
      throw Error("--layers: stages with replicas have no layout; give --stages");
    StageLayers& here = layout.emplace_back();
    for (const std::int32_t layer : stage.layers) {
      if (layer != next++) throw Error("--layers needs a profile whose layers are in a row");
      const bool is_first = layer == 0;
      const bool is_last = layer + 1 == count;
      const bool is_transformer = layer <= kinds.transformers;
      ++(is_first         ? here.embeddings
         : is_last        ? here.losses
         : is_transformer ? here.transformers
                          : here.predictions);
    }
  }
  return layout;
}

std::string write_partition(const PartitionPlan& plan, OutputFormat format) {
  if (format == OutputFormat::kMegatron) return megatron_of(*plan.layout);
  if (format == OutputFormat::kTorchtitan) return torchtitan_of(*plan.layout);
  if (format == OutputFormat::kJson) return json_of(plan);
  if (format == OutputFormat::kCsv) return csv_of(plan);
  return text_of(plan);
}

}  // namespace bubblescope::tools
