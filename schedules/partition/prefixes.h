// Prefixes: the sets of layers after which a model can be cut. A prefix contains the inputs of all
// its layers.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/model/layer_graph.h"

namespace bubblescope::schedules {

/// A set of layers that can be the first part of a pipeline, with its sums.
struct Prefix {
  std::vector<std::uint64_t> layer_bits;  ///< a bit per layer
  std::int32_t layers = 0;
  Nanos time = 0;
  Bytes activations = 0;
  Bytes parameters = 0;
  Bytes output = 0;  ///< output of the layers from which no other layer of the set takes
};

/// All prefixes, from the empty one to the whole model, smaller ones first; and for each the
/// smaller ones that it contains. The difference of the two is a stage.
struct Prefixes {
  std::vector<Prefix> all;
  std::vector<std::vector<std::int32_t>> contained;  ///< [prefix]: others, ascending
};

/// All prefixes of a graph; if there are more than `max_count`, only those of the layers in the
/// graph's order.
Prefixes find_prefixes(const LayerGraph& graph, std::size_t max_count);

/// Returns the layers of prefix `to` that are not in prefix `from`, ascending.
std::vector<std::int32_t> find_layers_between(const Prefixes& prefixes, std::int32_t from,
                                              std::int32_t to);

}  // namespace bubblescope::schedules
