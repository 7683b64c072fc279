// What a model's step comes to, said before everything else:
//
//   llama3-70b on h100, tp 8, cp 1, ep 1, dp 1, micro-batch size 1, 8192 tokens, ...
//   predicted    24.75 s per step, MFU 42.3 %, 331 tokens/s per device
//   expect       25 to 30.94 s, MFU 33.8 to 41.9 %: all 22 published runs of dense models on h100
//                took longer than predicted, by 1 to 25 %
//   memory       fits: rank 0 holds 60.1 GiB of 78.6 GiB, which leaves 18.5 GiB
//
// expect: where the step lies if it is as far off as the published runs that are nearest, by device
// and by whether the model has experts. They tell what a prediction of this kind leaves out, so
// that the predicted step may lie outside of it.
#pragma once

#include <string>

#include "sim/analysis/report.h"
#include "sim/predict/models.h"

namespace bubblescope::tools {

/// The lines above.
std::string write_model_headline(const PlacedModel& placed, const BubbleReport& report);

}  // namespace bubblescope::tools
