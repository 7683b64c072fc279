// Reads and writes replicas, their turns and weight versions.
#include "traces/schedules/native_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "sim/ir/counted.h"
#include "sim/ir/number.h"
namespace bubblescope::traces {

namespace {

std::optional<std::int32_t> parse_version(std::string_view digits) {
  const auto version = parse_number<std::int32_t>(digits);
  return version && *version >= 0 ? version : std::nullopt;
}

WeightUse read_use(const JsonNode& node, std::string_view word) {
  const std::size_t arrow = word.find('>');
  const auto read = parse_version(word.substr(0, arrow));
  WeightUse use{read.value_or(0), {}};
  if (arrow != word.npos) use.written = parse_version(word.substr(arrow + 1));
  if (!read || (arrow != word.npos && !use.written))
    node.refuse(fmt::format("'{}' names no versions; write 3, or 3>4 for an op that makes 4",
                            word.substr(0, 24)));
  return use;
}

std::vector<WeightUse> read_uses(const JsonNode& node) {
  std::vector<WeightUse> uses;
  std::string_view rest = node.text();
  while (!rest.empty()) {
    const std::string_view word = rest.substr(0, rest.find(' '));
    uses.push_back(read_use(node, word));
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
  }
  return uses;
}

std::string write_uses(const std::vector<WeightUse>& uses) {
  std::string text;
  for (const WeightUse& use : uses) {
    text += (text.empty() ? "" : " ") + std::to_string(use.read);
    if (use.written) text += '>' + std::to_string(*use.written);
  }
  return text;
}

void read_turns(const JsonNode& node, Schedule& schedule) {
  if (schedule.replicas_of_stage.empty())
    node.refuse("is how replicas take turns, and there are none; give 'replicas' for every stage");
  if (node.size() != static_cast<std::size_t>(schedule.stages()))
    node.refuse(fmt::format("has {} for {}; give one per stage", counted(node.size(), "entry"),
                            counted(schedule.stages(), "stage")));
  for (std::size_t stage = 0; stage < node.size(); ++stage) {
    if (node[stage].size() == 0) node[stage].refuse("is empty; name the replica of a micro-batch");
    std::vector<std::int32_t>& turns = schedule.turns_of_stage.emplace_back();
    const JsonNode list = node[stage];
    for (std::size_t at = 0; at < list.size(); ++at)
      turns.push_back(list[at].integer32(0, schedule.replicas_of_stage[stage] - 1));
  }
}

}  // namespace

void read_asynchronous(const JsonNode& node, Schedule& schedule) {
  if (const auto replicas = node.find("replicas")) {
    if (replicas->size() != static_cast<std::size_t>(schedule.stages()))
      replicas->refuse(fmt::format("has {} for {}; give one per stage",
                                   counted(replicas->size(), "entry"),
                                   counted(schedule.stages(), "stage")));
    for (std::size_t stage = 0; stage < replicas->size(); ++stage)
      schedule.replicas_of_stage.push_back(
          (*replicas)[stage].integer32(1, schedule.shape.ranks - schedule.rank_of_stage[stage]));
  }
  if (const auto turns = node.find("turns")) read_turns(*turns, schedule);
  const auto weights = node.find("weights");
  if (weights && weights->size() != static_cast<std::size_t>(schedule.shape.ranks))
    weights->refuse(fmt::format("has {} for {}; give one string per rank",
                                counted(weights->size(), "entry"),
                                counted(schedule.shape.ranks, "rank")));
  if (weights)
    for (std::size_t rank = 0; rank < weights->size(); ++rank)
      schedule.weights.push_back(read_uses((*weights)[rank]));
}

void write_asynchronous(JsonWriter& json, const Schedule& schedule) {
  if (!schedule.replicas_of_stage.empty())
    json.line(1).array("replicas", schedule.replicas_of_stage);
  if (schedule.is_data_parallel()) {
    json.line(1).key("turns").begin_array();
    for (const std::vector<std::int32_t>& turns : schedule.turns_of_stage) {
      json.line_between(2).begin_array();
      for (const std::int32_t replica : turns) json.value(replica);
      json.end_array();
    }
    json.end_array();
  }
  if (schedule.weights.empty()) return;
  json.line(1).key("weights").begin_array();
  for (const std::vector<WeightUse>& uses : schedule.weights)
    json.line_between(2).value(write_uses(uses));
  json.end_array();
}

}  // namespace bubblescope::traces
