// Reads the contention of a stage in a cost file.
#include "traces/costs/contention_entry.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "traces/json/json_node.h"

namespace bubblescope::traces {

namespace {

constexpr double kMaxWeight = 100;

std::size_t read_kind(const JsonNode& node) {
  const std::string& text = node.text();
  const auto* const found = std::find(kCostKeys.begin(), kCostKeys.end(), text);
  if (found == kCostKeys.end())
    node.refuse(
        "is not a kind of op; write forward, backward, input_grad, weight_grad or recompute");
  return static_cast<std::size_t>(found - kCostKeys.begin());
}

}  // namespace

ContentionEntry read_contention(const JsonNode& node) {
  node.expect_keys({kCostKeys[0], kCostKeys[1], kCostKeys[2], kCostKeys[3], kCostKeys[4]});
  ContentionEntry times;
  for (std::size_t kind = 0; kind < kCostKeys.size(); ++kind)
    if (const auto list = node.find(kCostKeys[kind]))
      for (std::size_t at = 0; at < list->size(); ++at)
        times[kind].push_back((*list)[at].duration());
  return times;
}

std::optional<KindWeights> read_kind_contention(const JsonNode& root) {
  const auto list = root.find("kind_contention");
  if (!list) return {};
  KindWeights weights = equal_kind_weights();
  std::set<std::pair<std::size_t, std::size_t>> seen;
  for (std::size_t at = 0; at < list->size(); ++at) {
    const JsonNode node = (*list)[at];
    node.expect_keys({"kind", "beside", "weight"});
    const std::size_t kind = read_kind(node.at("kind"));
    const std::size_t beside = read_kind(node.at("beside"));
    if (!seen.emplace(kind, beside).second)
      node.refuse("has a weight above for the same kinds; remove one of them");
    const JsonNode weight = node.at("weight");
    const std::optional<double> value = weight.number();
    if (!value || !(*value >= 0 && *value <= kMaxWeight))
      weight.refuse("must be a number from 0 to 100: how many times as much the op is slowed");
    weights[kind][beside] = *value;
  }
  return weights;
}

}  // namespace bubblescope::traces
