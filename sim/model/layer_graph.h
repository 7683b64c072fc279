// A model as its layers: what each costs and whose outputs it takes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/ir/units.h"

namespace bubblescope {

/// One layer, for one micro-batch.
struct Layer {
  std::string name = {};  ///< as its source calls it: "node11"
  std::string kind = {};  ///< what it does: "ReLU(inplace)"; may be empty
  Nanos forward = 0;
  Nanos backward = 0;
  Bytes activations = 0;  ///< what it puts out, which its backward needs
  Bytes parameters = 0;
  std::optional<Bytes> sent = {};  ///< what the next layer takes, where that is something else

  Nanos time() const { return forward + backward; }
  Bytes output() const { return sent.value_or(activations); }
};

/// Layers in an order in which they can run.
struct LayerGraph {
  std::string source;  ///< the file, for messages
  std::vector<Layer> layers;
  std::vector<std::vector<std::int32_t>>
      inputs;  ///< [layer]: earlier layers whose outputs it takes

  std::int32_t size() const { return static_cast<std::int32_t>(layers.size()); }
};

}  // namespace bubblescope
