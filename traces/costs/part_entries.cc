// Reads parts, orders and the contention between lanes.
#include "traces/costs/part_entries.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "sim/ir/counted.h"
#include "sim/ir/error.h"
#include "traces/json/part_lane.h"

namespace bubblescope::traces {

namespace {

constexpr std::size_t kMaxNameLength = 40;

/// The parts above the one that is being read, by name.
using PartsAbove = std::map<std::string, std::size_t>;

/// Names appear in orders and in the columns of tables.
std::string read_name(const JsonNode& node, const PartsAbove& above) {
  const std::string& name = node.text();
  const bool is_plain = std::all_of(name.begin(), name.end(), [](char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
           (letter >= '0' && letter <= '9') || letter == '_' || letter == '-';
  });
  if (!is_plain || name.empty() || name.size() > kMaxNameLength)
    node.refuse(fmt::format("must have 1 to {} letters, digits, '_' or '-'", kMaxNameLength));
  if (above.count(name) > 0)
    node.refuse("is the name of a part above; give each part one of its own");
  return name;
}

std::vector<Nanos> read_times(const JsonNode& node, std::int32_t layers) {
  if (!node.is_array()) return {node.duration()};
  if (node.size() != static_cast<std::size_t>(layers))
    node.refuse(fmt::format(
        "has {} for {}; give one per layer, or one time for "
        "all",
        counted(static_cast<std::int64_t>(node.size()), "entry"), counted(layers, "layer")));
  std::vector<Nanos> times;
  for (std::size_t layer = 0; layer < node.size(); ++layer) times.push_back(node[layer].duration());
  return times;
}

/// Parts wait only for parts above them, so that they cannot wait for each other.
std::vector<std::size_t> read_after(const JsonNode& node, const PartsAbove& above) {
  std::vector<std::size_t> after;
  for (std::size_t at = 0; at < node.size(); ++at) {
    const JsonNode name = node[at];
    const auto part = above.find(name.text());
    if (part == above.end()) name.refuse("names no part that this one can wait for");
    if (std::find(after.begin(), after.end(), part->second) != after.end())
      name.refuse("is there twice; name each part once");
    after.push_back(part->second);
  }
  return after;
}

OpPart read_part(const JsonNode& node, std::int32_t layers, const PartsAbove& above) {
  node.expect_keys({"name", "lane", "time", "after", "after_previous_layer"});
  OpPart part;
  part.name = read_name(node.at("name"), above);
  if (const auto lane = node.find("lane")) part.lane = read_part_lane(*lane);
  part.times = read_times(node.at("time"), layers);
  if (const auto after = node.find("after"))
    part.after = read_after(*after, above);
  else if (!above.empty())
    part.after = {above.size() - 1};
  return part;
}

/// A part that waits for none in its layer waits for the end of the layer before.
void connect_layers(const JsonNode& list, const PartsAbove& all, OpParts& op) {
  const std::vector<std::size_t> last = find_last_parts(op);
  for (std::size_t at = 0; at < op.parts.size(); ++at) {
    const JsonNode part = list[at];
    if (const auto after = part.find("after_previous_layer"))
      op.parts[at].after_previous_layer = read_after(*after, all);
    else if (op.parts[at].after.empty())
      op.parts[at].after_previous_layer = last;
  }
}

void expect_size(const JsonNode& node, const OpParts& op) {
  if (op.empty()) node.refuse("has no parts; list them, or give the time of the whole op");
  if (std::int64_t{op.layers} * static_cast<std::int64_t>(op.parts.size()) > kMaxPartsOfOp)
    node.refuse(
        fmt::format("has more than {} parts over its {}; fold layers into one, "
                    "with the times of all",
                    kMaxPartsOfOp, counted(op.layers, "layer")));
  Nanos sum = 0;
  for (const OpPart& part : op.parts)
    for (std::int32_t layer = 0; layer < op.layers; ++layer) {
      if (part.time(layer) > kMaxPartsTime - sum)
        node.refuse("has parts that take longer than 11 days together; correct their times");
      sum += part.time(layer);
    }
}

/// Reads an object with parts, or their list alone.
OpParts read_op(const JsonNode& node) {
  OpParts op;
  if (!node.is_array()) {
    node.expect_keys({"layers", "parts"});
    if (const auto layers = node.find("layers")) op.layers = layers->integer32(1, kMaxPartsOfOp);
  }
  const JsonNode list = node.is_array() ? node : node.at("parts");
  if (list.size() > static_cast<std::size_t>(kMaxPartsOfOp))
    list.refuse(
        fmt::format("has more than {}; fold parts into one", counted(kMaxPartsOfOp, "entry")));
  PartsAbove above;
  for (std::size_t at = 0; at < list.size(); ++at) {
    const JsonNode part = list[at];
    op.parts.push_back(read_part(part, op.layers, above));
    above.emplace(op.parts.back().name, at);
  }
  expect_size(node, op);
  connect_layers(list, above, op);
  return op;
}

PairOrder read_order(const JsonNode& node) {
  try {
    if (!node.is_array()) return find_pair_order(node.text());
    std::vector<std::string> words;
    for (std::size_t at = 0; at < node.size(); ++at) words.push_back(node[at].text());
    return parse_pair_order(words);
  } catch (const Error& error) {
    node.refuse(error.what());
  }
}

}  // namespace

bool has_parts(const JsonNode& node) {
  return node.is_object() && (node.find("parts") || node.find("order"));
}

void read_parts(const JsonNode& node, CostKey key, StageDraft& draft) {
  if (key == CostKey::kOverlappedPair) {
    node.expect_keys({"order"});
    draft.parts.pair_order = read_order(node.at("order"));
    return;
  }
  if (key > time_key(OpKind::kRecompute))
    node.refuse("is not an op that computes; only those have parts");
  OpParts op = read_op(node);
  set_value(draft.entry, key, run_parts(op, draft.contention).time);
  draft.parts.of_kind[static_cast<std::size_t>(key)] = std::move(op);
}

LaneContention read_lane_contention(const JsonNode& root) {
  LaneContention contention;
  const auto list = root.find("part_contention");
  if (!list) return contention;
  for (std::size_t at = 0; at < list->size(); ++at) {
    const JsonNode node = (*list)[at];
    node.expect_keys({"lane", "beside", "slowdown"});
    const PartLane lane = read_part_lane(node.at("lane"));
    const PartLane beside = read_part_lane(node.at("beside"));
    if (lane == beside) node.refuse("names one lane twice; a lane runs one part at a time");
    const JsonNode slowdown = node.at("slowdown");
    const double factor = slowdown.positive_number();
    if (factor < 1 || factor > LaneContention::kMaxSlowdown)
      slowdown.refuse(fmt::format("must be from 1 to {}: how many times longer a part takes",
                                  LaneContention::kMaxSlowdown));
    if (contention.slowdown[lane][beside] != 1)
      node.refuse("has a slowdown above for the same lanes; remove one of them");
    contention.slowdown[lane][beside] = factor;
  }
  return contention;
}

}  // namespace bubblescope::traces
