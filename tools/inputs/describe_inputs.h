// The inputs of a prediction in words, for reports and saved steps.
#pragma once

#include <map>
#include <string>

#include "sim/predict/models.h"
#include "tools/flags/options.h"

namespace bubblescope::tools {

/// The conditions of a step that are not as usual, by field, each as its flag takes it.
std::map<std::string, std::string> list_conditions(const PredictOptions& flags);

/// Says in words where the durations come from.
std::string costs_text(const Models& models, const PredictOptions& flags);

}  // namespace bubblescope::tools
