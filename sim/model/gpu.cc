// Finds the links inside a node.
#include "sim/model/gpu.h"

namespace bubblescope::inline sim {

Link Gpu::between_devices() const {
  if (is_mesh || has_switch()) return inside;
  return {inside.latency, inside.bytes_per_second / (per_node - 1)};
}

}  // namespace bubblescope::inline sim
