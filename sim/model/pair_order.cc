// Orders of the parts of overlapped pairs.
#include "sim/model/pair_order.h"

#include <array>
#include <iterator>
#include <set>
#include <sstream>

#include "sim/ir/error.h"

namespace bubblescope::inline sim {

namespace {

struct KnownPairOrder {
  std::string_view name;
  std::string_view words;  ///< "B.combine F.attn | B.mlp ..."
};

/// A new order is one more entry.
constexpr std::array<KnownPairOrder, 3> kPairOrders{{
    // DeepSeek-V3's DualPipe: three windows per layer.
    {"dualpipe",
     "B.combine F.attn | B.mlp F.dispatch B.dispatch B.mlp_w F.mlp | B.attn B.attn_w F.combine |"},
    // Megatron-Core's 1F1B with overlapped all-to-all.
    {"megatron",
     "B.combine F.attn B.mlp F.dispatch B.mlp_w B.dispatch F.mlp F.combine B.attn B.attn_w"},
    // After STP (our reading): tensor-parallel collectives of each op beside compute of the other.
    {"braid",
     "F.attn B.mlp F.attn_reduce F.mlp B.mlp_reduce B.attn F.mlp_reduce B.attn_reduce B.mlp_w "
     "B.attn_w"},
}};

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

PairOrder find_pair_order(std::string_view name) {
  std::string names;
  for (const KnownPairOrder& known : kPairOrders) {
    if (known.name == name) {
      std::istringstream words{std::string(known.words)};
      PairOrder order = parse_pair_order({std::istream_iterator<std::string>(words), {}});
      order.name = name;
      return order;
    }
    names += (names.empty() ? "" : ", ") + std::string(known.name);
  }
  throw Error("is no order of parts; the orders are " + names + "; or list the parts");
}

}  // namespace bubblescope::inline sim
