// From the flags of a model to the model on its devices: reads the files that they name, and looks
// up all other names.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/model/layer_cost.h"
#include "tools/flags/model_options.h"

namespace bubblescope::tools {

/// Looks up the model and the device. `lengths` are those of the micro-batches' sequences; empty:
/// all are alike. Throws Error with the nearest known name.
ModelOnDevices resolve_model(const ModelOptions& options, std::vector<std::int64_t> lengths = {});

/// Says on stderr where the size of the heads makes attention slow, and which would be faster.
void note_heads(const ModelOnDevices& on);

/// Prints the assumptions to stderr, one per line.
void print_assumptions(const ModelOnDevices& on);

}  // namespace bubblescope::tools
