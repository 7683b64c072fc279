// Where a model can be cut: the sets of layers that hold all that their layers take.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/model/layer_graph.h"

namespace bubblescope {

/// A set of layers that can be the first part of a pipeline, with its sums.
struct Prefix {
  std::vector<std::uint64_t> holds;  ///< a bit per layer
  std::int32_t layers = 0;
  Nanos time = 0;
  Bytes activations = 0;
  Bytes parameters = 0;
  Bytes output = 0;  ///< of the layers that no other one of the set takes from
};

/// Prefixes from none of the layers to all, the smaller first; and for each, which smaller ones it
/// holds whole: between the two is a stage.
struct Prefixes {
  std::vector<Prefix> all;
  std::vector<std::vector<std::int32_t>> inside;  ///< [prefix]: others, ascending
};

/// All prefixes of a graph; where those are more than `most`, those of a chain in the graph's
/// order.
Prefixes find_prefixes(const LayerGraph& graph, std::size_t most);

/// The layers of prefix `to` that are not in `from`, ascending.
std::vector<std::int32_t> layers_between(const Prefixes& prefixes, std::int32_t from,
                                         std::int32_t to);

}  // namespace bubblescope
