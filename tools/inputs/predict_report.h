// Predicts a step for callers that show its report only.
#pragma once

#include <string>

#include "sim/predict/predict_repeated.h"
#include "tools/inputs/predict.h"

namespace bubblescope::tools {

/// The same as predict() for callers that show the report and draw these ranks: of a long step that
/// repeats itself, program and timeline hold no more than that.
TimedStep predict_report(const std::string& name_or_path, const PredictInputs& inputs,
                         const ChooseRanks& choose_ranks);

/// The same from a schedule on, which has its moves already.
TimedStep predict_report(ValidSchedule schedule, const PredictInputs& inputs,
                         const ChooseRanks& choose_ranks);

/// The whole of a step that was predicted from these inputs. Prints no notes again.
TimedStep complete(const TimedStep& excerpt, const PredictInputs& inputs);

}  // namespace bubblescope::tools
