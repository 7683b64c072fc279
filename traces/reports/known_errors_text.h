// Writes known errors as a sentence.
#pragma once

#include <string>

#include "sim/model/known_errors.h"

namespace bubblescope::traces {

/// Writes a sentence such as "all 22 published runs of dense models on h100 took longer than
/// predicted, by 1 to 25 %". It explains why the predicted time may lie outside the expected range.
/// `unpublished_schedule` is one that none of these runs had, if the prediction has such a one.
std::string known_errors_text(const KnownErrors& errors,
                              const std::string& unpublished_schedule = {});

}  // namespace bubblescope::traces
