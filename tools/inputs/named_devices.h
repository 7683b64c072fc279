// Looks up models, devices and runtimes by their names, or reads them from files.
#pragma once

#include <string>

#include "sim/model/layer_cost.h"
#include "sim/model/runtime.h"

namespace bubblescope::tools {

/// Sets the model: a preset's, or that of a file. Throws Error with the nearest known name.
void set_model(ModelOnDevices& on, const std::string& name);

/// Sets the device, and that of each rank where the list has more than one name, and returns the
/// list. Throws Error likewise.
std::string set_gpus(ModelOnDevices& on, const std::string& list);

/// Throws Error likewise.
RuntimeDef find_runtime(const std::string& name);

}  // namespace bubblescope::tools
