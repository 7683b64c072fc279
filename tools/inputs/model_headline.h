// Writes the summary of a model's step, which comes before everything else:
//
//   llama3-70b on h100, tp 8, cp 1, ep 1, dp 1, micro-batch size 1, 8192 tokens, ...
//   predicted    24.75 s per step, MFU 42.3 %, 331 tokens/s per device
//   expect       25 to 30.94 s, MFU 33.8 to 41.9 %: all 22 published runs of dense models on h100
//                took longer than predicted, by 1 to 25 %
//   memory       fits: rank 0 holds 60.1 GiB of 78.6 GiB, which leaves 18.5 GiB
//
// The line of memory names the precision of gradients where it is not fp32: it may have been chosen
// because larger gradients do not fit.
//
// "expect" is the range of the step if its prediction is as far off as those of the nearest
// published runs, which have the same device and the same type of model: dense, or mixture of
// experts. The predicted step may lie outside it, because predictions leave out some costs that
// every run has.
#pragma once

#include <string>

#include "sim/analysis/report.h"
#include "sim/predict/models.h"

namespace bubblescope::tools {

/// Returns a text such as "16-bit gradients".
std::string describe_gradients(Gradients gradients);

/// Returns the lines above.
std::string write_model_headline(const PlacedModel& placed, const BubbleReport& report);

}  // namespace bubblescope::tools
