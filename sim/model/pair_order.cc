// Orders of the parts of overlapped pairs.
#include "sim/model/pair_order.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <set>
#include <sstream>

#include "sim/ir/error.h"

namespace bubblescope::inline sim {

namespace {

struct KnownPairOrder {
  std::string_view name;
  std::string_view words;  ///< of one layer: "B.combine F.attn | B.mlp ..."
};

/// Parts of models that stand before and after a layer in every known order; most are in the first
/// or the last layer of a stage alone.
constexpr std::string_view kBeforeLayer =
    "F.gather B.gather F.embedding B.head B.recompute B.recompute_tensor B.recompute_context "
    "B.recompute_expert ";
constexpr std::string_view kBehindLayer =
    " F.head F.rest F.send B.embedding B.rest B.reduce B.send";

/// A new order is one more entry.
constexpr std::array<KnownPairOrder, 3> kPairOrders{{
    // DeepSeek-V3's DualPipe: three windows per layer.
    {"dualpipe",
     "B.combine F.context F.attn | B.mlp F.attn_reduce F.dispatch B.dispatch B.mlp_reduce B.mlp_w "
     "F.mlp | B.attn B.attn_w F.combine F.mlp_reduce B.context B.attn_reduce |"},
    // Megatron-Core's 1F1B with overlapped all-to-all.
    {"megatron",
     "B.combine F.context F.attn F.attn_reduce B.mlp F.dispatch B.mlp_w B.dispatch B.mlp_reduce "
     "F.mlp F.combine B.attn B.attn_w F.mlp_reduce B.context B.attn_reduce"},
    // After STP (our reading): tensor-parallel collectives of each op beside compute of the other.
    {"braid",
     "B.combine F.context F.attn B.mlp F.attn_reduce F.dispatch B.dispatch F.mlp B.mlp_reduce "
     "F.combine B.attn F.mlp_reduce B.context B.attn_reduce B.mlp_w B.attn_w"},
}};

std::vector<std::string> split_words(std::string_view text) {
  std::istringstream words{std::string(text)};
  return {std::istream_iterator<std::string>(words), {}};
}

std::string label_of(const OrderedPart& part) {
  return (part.of_backward ? "B." : "F.") + part.name;
}

/// Every known order lists all parts of models.
std::vector<std::string> list_model_parts() {
  std::vector<std::string> names;
  for (const OrderedPart& part : find_pair_order(kPairOrders.front().name).parts)
    names.push_back(label_of(part));
  return names;
}

void expect_parts_of_models(const PairOrder& order) {
  const std::vector<std::string> known = list_model_parts();
  std::string unknown;
  for (const OrderedPart& part : order.parts)
    if (std::find(known.begin(), known.end(), label_of(part)) == known.end())
      unknown += (unknown.empty() ? "" : ", ") + label_of(part);
  if (unknown.empty()) return;
  std::string names;
  for (const std::string& name : known) names += (names.empty() ? "" : ", ") + name;
  throw Error("has " + unknown + ", which no op of a model has; the parts are " + names);
}

}  // namespace

PairOrder parse_pair_order(const std::vector<std::string>& words) {
  PairOrder order;
  std::set<std::string> seen;
  for (const std::string& word : words) {
    if (word == "|") {
      if (order.parts.empty() || order.parts.back().ends_window)
        throw Error("has a barrier with no part before it; remove it");
      order.parts.back().ends_window = true;
      continue;
    }
    const std::string op = word.substr(0, 2);
    if ((op != "F." && op != "B.") || word.size() == 2)
      throw Error("has '" + word + "', which names no part; write F.NAME, B.NAME, or | for a " +
                  "barrier");
    if (!seen.insert(word).second)
      throw Error("has '" + word + "' twice; a part runs once per layer");
    order.parts.push_back({op == "B.", word.substr(2)});
  }
  return order;
}

PairOrder find_pair_order(std::string_view name, std::string_view others) {
  std::string names;
  for (const KnownPairOrder& known : kPairOrders) {
    if (known.name == name) {
      PairOrder order = parse_pair_order(split_words(
          std::string(kBeforeLayer) + std::string(known.words) + std::string(kBehindLayer)));
      order.name = name;
      order.skips_missing = true;
      return order;
    }
    names += std::string(known.name) + ", ";
  }
  throw Error("'" + std::string(name) + "' is not an order of parts; give " + names +
              std::string(others) + "or a list of parts");
}

PairOrder parse_model_order(const std::vector<std::string>& words) {
  PairOrder order = parse_pair_order(words);
  expect_parts_of_models(order);
  const auto find_unlisted = [&words](std::string_view of_stages) {
    std::vector<std::string> unlisted = split_words(of_stages);
    std::erase_if(unlisted, [&words](const std::string& word) {
      return std::find(words.begin(), words.end(), word) != words.end();
    });
    return parse_pair_order(unlisted).parts;
  };
  const std::vector<OrderedPart> before = find_unlisted(kBeforeLayer);
  const std::vector<OrderedPart> behind = find_unlisted(kBehindLayer);
  order.parts.insert(order.parts.begin(), before.begin(), before.end());
  order.parts.insert(order.parts.end(), behind.begin(), behind.end());
  order.skips_missing = true;
  return order;
}

}  // namespace bubblescope::inline sim
