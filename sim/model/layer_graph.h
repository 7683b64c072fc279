// A model as a graph of layers: the cost of each and the layers whose outputs it takes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/ir/units.h"
#include "sim/model/cost_table.h"

namespace bubblescope::inline sim {

/// One layer, for one micro-batch.
struct Layer {
  std::string name = {};  ///< the source's name: "node11"
  std::string kind = {};  ///< the operator: "ReLU(inplace)"; may be empty
  Nanos forward = 0;
  Nanos backward = 0;
  Bytes activations = 0;  ///< its output, which its backward needs
  Bytes parameters = 0;
  /// Its input to the next layer, if that differs from its activations.
  std::optional<Bytes> sent = {};

  Nanos time() const { return forward + backward; }
  Bytes output() const { return sent.value_or(activations); }
};

/// Layers in topological order.
struct LayerGraph {
  std::string source;  ///< the file, for messages
  std::vector<Layer> layers;
  std::vector<std::vector<std::int32_t>>
      inputs;                           ///< [layer]: earlier layers whose outputs it takes
  std::optional<CostTable> costs = {};  ///< the table whose stages are the layers, if it is one

  std::int32_t size() const { return static_cast<std::int32_t>(layers.size()); }
};

}  // namespace bubblescope::inline sim
