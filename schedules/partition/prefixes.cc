// Grows prefixes layer by layer.
#include "schedules/partition/prefixes.h"

#include <algorithm>
#include <set>
#include <utility>

#include "schedules/partition/partition.h"

namespace bubblescope::schedules {

namespace {

constexpr std::int32_t kBits = 64;

bool has(const std::vector<std::uint64_t>& layer_bits, std::int32_t layer) {
  return layer_bits[static_cast<std::size_t>(layer / kBits)] >> (layer % kBits) & 1;
}

Prefix with_layer(const Prefix& prefix, const LayerGraph& graph, std::int32_t at) {
  const Layer& layer = graph.layers[static_cast<std::size_t>(at)];
  Prefix grown = prefix;
  grown.layer_bits[static_cast<std::size_t>(at / kBits)] |= std::uint64_t{1} << (at % kBits);
  ++grown.layers;
  grown.time += layer.time();
  grown.activations += layer.activations;
  grown.parameters += layer.parameters;
  return grown;
}

Prefix empty_prefix(const LayerGraph& graph) {
  Prefix prefix;
  prefix.layer_bits.resize(static_cast<std::size_t>(graph.size() / kBits + 1), 0);
  return prefix;
}

/// Returns a flag per layer: whether the prefix contains it.
std::vector<bool> layers_of(const Prefix& prefix, const LayerGraph& graph) {
  std::vector<bool> layers;
  for (std::int32_t at = 0; at < graph.size(); ++at) layers.push_back(has(prefix.layer_bits, at));
  return layers;
}

bool can_run(const LayerGraph& graph, const Prefix& prefix, std::int32_t layer) {
  if (has(prefix.layer_bits, layer)) return false;
  const std::vector<std::int32_t>& inputs = graph.inputs[static_cast<std::size_t>(layer)];
  return std::all_of(inputs.begin(), inputs.end(),
                     [&](std::int32_t from) { return has(prefix.layer_bits, from); });
}

/// Works level by level: all prefixes of n layers, then of n+1. Empty if there are more than
/// `max_count`.
std::vector<Prefix> all_prefixes(const LayerGraph& graph, std::size_t max_count) {
  std::vector<Prefix> found{empty_prefix(graph)};
  for (std::size_t begin = 0, end = 1; begin < end; begin = end, end = found.size()) {
    std::set<std::vector<std::uint64_t>> seen;
    for (std::size_t at = begin; at < end; ++at)
      for (std::int32_t layer = 0; layer < graph.size(); ++layer) {
        if (!can_run(graph, found[at], layer)) continue;
        Prefix grown = with_layer(found[at], graph, layer);
        if (!seen.insert(grown.layer_bits).second) continue;
        if (found.size() == max_count) return {};
        found.push_back(std::move(grown));
      }
  }
  return found;
}

std::vector<Prefix> chain_prefixes(const LayerGraph& graph) {
  std::vector<Prefix> found{empty_prefix(graph)};
  for (std::int32_t layer = 0; layer < graph.size(); ++layer)
    found.push_back(with_layer(found.back(), graph, layer));
  return found;
}

bool contains_prefix(const Prefix& larger, const Prefix& smaller) {
  for (std::size_t word = 0; word < smaller.layer_bits.size(); ++word)
    if (smaller.layer_bits[word] & ~larger.layer_bits[word]) return false;
  return larger.layers > smaller.layers;
}

}  // namespace

Prefixes find_prefixes(const LayerGraph& graph, std::size_t max_count) {
  Prefixes prefixes;
  prefixes.all = all_prefixes(graph, max_count);
  if (prefixes.all.empty()) prefixes.all = chain_prefixes(graph);
  for (Prefix& prefix : prefixes.all) prefix.output = sum_outputs(graph, layers_of(prefix, graph));
  prefixes.contained.resize(prefixes.all.size());
  for (std::size_t to = 0; to < prefixes.all.size(); ++to)
    for (std::size_t from = 0; from < to; ++from)
      if (contains_prefix(prefixes.all[to], prefixes.all[from]))
        prefixes.contained[to].push_back(static_cast<std::int32_t>(from));
  return prefixes;
}

std::vector<std::int32_t> find_layers_between(const Prefixes& prefixes, std::int32_t from,
                                              std::int32_t to) {
  const Prefix& smaller = prefixes.all[static_cast<std::size_t>(from)];
  const Prefix& larger = prefixes.all[static_cast<std::size_t>(to)];
  std::vector<std::int32_t> layers;
  for (std::int32_t at = 0; at < static_cast<std::int32_t>(larger.layer_bits.size()) * kBits; ++at)
    if (has(larger.layer_bits, at) && !has(smaller.layer_bits, at)) layers.push_back(at);
  return layers;
}

}  // namespace bubblescope::schedules
