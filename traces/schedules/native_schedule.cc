// Reads and writes the native schedule object.
#include "traces/schedules/native_schedule.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>
#include <vector>

#include "sim/ir/counted.h"
#include "sim/ir/size_limits.h"
#include "traces/files/format.h"
#include "traces/files/quote.h"
#include "traces/schedules/cell.h"
#include "traces/schedules/infer_schedule.h"
#include "traces/schedules/native_activations.h"
#include "traces/schedules/native_after.h"
#include "traces/schedules/native_json.h"
#include "traces/schedules/native_weights.h"

namespace bubblescope::traces {

namespace {

constexpr const char* kFormat = "bubblescope-schedule/1";
constexpr JsonKey kFusedForwards{"fused_forwards", "joint_forwards"};

Shape read_shape(const JsonNode& node) {
  node.expect_keys({"ranks", "chunks", "microbatches", "slices", "group_size"});
  Shape shape;
  shape.ranks = node.at("ranks").integer32(1, kMaxRanks);
  shape.chunks = node.at("chunks").integer32(1, kMaxStages);
  shape.microbatches = node.at("microbatches").integer32(1, kMaxMicrobatches);
  if (const auto slices = node.find("slices")) shape.slices = slices->integer32(1, kMaxSlice + 1);
  if (const auto group_size = node.find("group_size"))
    shape.group_size = group_size->integer32(1, kMaxMicrobatches);
  return shape;
}

void read_placement(const JsonNode& node, Schedule& schedule) {
  const auto stages = node.size();
  if (stages == 0 || stages > std::size_t{kMaxStages})
    node.refuse(fmt::format("has {}; 1 to {} are possible", counted(stages, "stage"), kMaxStages));
  for (std::size_t stage = 0; stage < stages; ++stage)
    schedule.rank_of_stage.push_back(node[stage].integer32(0, schedule.shape.ranks - 1));
  if (schedule.stages() % schedule.pipelines != 0)
    node.refuse(fmt::format("has {}, which {} cannot share evenly; correct one",
                            counted(stages, "stage"), counted(schedule.pipelines, "pipeline")));
}

/// Reads the stage graph: for each stage, the stages that it reads.
void read_inputs(const JsonNode& node, Schedule& schedule) {
  if (node.size() != schedule.rank_of_stage.size())
    node.refuse(fmt::format("has {} for {}; give a list of stages for each",
                            counted(node.size(), "entry"), counted(schedule.stages(), "stage")));
  StageLists inputs(node.size());
  for (std::size_t stage = 0; stage < node.size(); ++stage) {
    const JsonNode list = node[stage];
    for (std::size_t at = 0; at < list.size(); ++at)
      inputs[stage].push_back(list[at].integer32(0, schedule.stages() - 1));
  }
  schedule.graph = StageGraph(std::move(inputs));
}

void write_inputs(JsonWriter& json, const Schedule& schedule) {
  if (schedule.graph.is_chain()) return;
  json.line(1).key("inputs").begin_array();
  for (const std::vector<std::int32_t>& list : schedule.graph.inputs()) {
    json.begin_array();
    for (const std::int32_t input : list) json.value(input);
    json.end_array();
  }
  json.end_array();
}

/// Reads one rank's ops: cells of the text form, separated by blanks.
RankOrder read_ops(const JsonNode& node) {
  std::string_view rest = strip(node.text());
  RankOrder ops;
  while (!rest.empty()) {
    const std::string_view token = rest.substr(0, rest.find(' '));
    const Cell cell = parse_cell(token, CellGrammar::kOwn);
    if (!cell.sound()) node.refuse(fmt::format("{} {}", quote(token), cell.fault));
    ops.insert(ops.end(), cell.ops.begin(),
               cell.ops.begin() + static_cast<std::ptrdiff_t>(cell.count));
    rest = strip(rest.substr(token.size()));
  }
  return ops;
}

std::vector<RankOrder> read_lists(const JsonNode& node, const Shape& shape) {
  if (node.size() != static_cast<std::size_t>(shape.ranks))
    node.refuse(fmt::format("has {} for {}; give one string per rank",
                            counted(node.size(), "entry"), counted(shape.ranks, "rank")));
  std::vector<RankOrder> lists;
  for (std::size_t rank = 0; rank < node.size(); ++rank) lists.push_back(read_ops(node[rank]));
  return lists;
}

std::string write_list(const RankOrder& list) {
  std::string text;
  for (std::size_t at = 0; at < list.size();) {
    if (at > 0) text += ' ';
    at = append_cell(text, list, at, CellGrammar::kOwn);
  }
  return text;
}

bool recognize_native(std::string_view text) {
  const std::string_view content = strip(text.substr(0, 256));
  return content.starts_with('{') || content.starts_with('[');
}

const Registrar<ScheduleFormat> native_schedule_registrar{[] {
  return ScheduleFormat{"native",
                        {"json"},
                        "our own json: everything a schedule says",
                        write_native_schedule,
                        read_native_schedule,
                        recognize_native};
}};

}  // namespace

Schedule read_schedule_object(const JsonNode& node) {
  node.expect_format(kFormat);
  node.expect_keys({"format", "name", "shape", "pipelines", "forward_only", "placement", "order",
                    kFusedForwards, "replicas", "turns", "weights", "recompute", kOffloadTargets,
                    "side_stages", "inputs", "after"});
  const Shape shape = read_shape(node.at("shape"));
  Schedule schedule = make_schedule_of_lists(read_lists(node.at("order"), shape));
  schedule.name = node.at("name").text();
  schedule.shape = shape;
  if (const auto pipelines = node.find("pipelines"))
    schedule.pipelines = pipelines->integer32(1, 2);
  if (const auto forward_only = node.find("forward_only"))
    schedule.forward_only = forward_only->boolean();
  if (const auto fused = node.find(kFusedForwards))
    schedule.fused_forwards = fused->integer32(1, kMaxMicrobatches);
  read_placement(node.at("placement"), schedule);
  read_asynchronous(node, schedule);
  read_activation_keys(node, schedule);
  if (const auto side = node.find("side_stages"))
    schedule.side_stages = side->integer32(0, schedule.stages() - 1);
  if (const auto inputs = node.find("inputs")) read_inputs(*inputs, schedule);
  read_after(node, schedule);
  if (const auto excess = explain_size(schedule)) node.at("shape").refuse(*excess);
  return schedule;
}

void write_schedule_object(JsonWriter& json, const Schedule& schedule) {
  const Shape& shape = schedule.shape;
  json.begin_object().member("format", kFormat).line(1).member("name", schedule.name);
  json.line(1).key("shape").begin_object().member("ranks", shape.ranks);
  json.member("chunks", shape.chunks).member("microbatches", shape.microbatches);
  json.member("slices", shape.slices);
  if (shape.group_size) json.member("group_size", *shape.group_size);
  json.end_object().line(1).member("pipelines", schedule.pipelines);
  json.line(1).member("forward_only", schedule.forward_only);
  json.line(1).array("placement", schedule.rank_of_stage).line(1).key("order").begin_array();
  for (const RankOrder& list : get_lists(schedule)) json.line_between(2).value(write_list(list));
  json.end_array();
  if (schedule.fused_forwards > 1)
    json.line(1).member(kFusedForwards.name, schedule.fused_forwards);
  write_asynchronous(json, schedule);
  write_activation_keys(json, schedule);
  if (schedule.side_stages > 0) json.line(1).member("side_stages", schedule.side_stages);
  write_inputs(json, schedule);
  write_after(json, schedule);
  json.end_object();
}

Schedule read_native_schedule(std::string_view text, const std::string& file) {
  const JsonFile json(text, file);
  return read_schedule_object(json.root());
}

std::string write_native_schedule(const Schedule& schedule) {
  std::string out;
  JsonWriter json(out);
  write_schedule_object(json, schedule);
  return out + '\n';
}

}  // namespace bubblescope::traces
