// The layers of every stage, where nothing else says them: the split with the shortest step.
//
// balance_layers.h gives the split whose slowest stage or rank is as fast as possible. Which of the
// two counts, and which stages take the layers that do not divide evenly, depends on the order of
// the ops. So the step is simulated with several splits:
//   - the balanced one, over ranks and over stages;
//   - the same with the surplus layers on the first stages, or on the first ones of the last chunk;
//   - the best so far with one layer moved, as the critical paths of all others suggest: each path
//     is a lower bound on the step of any other split, because it is a chain there, too.
// The shortest step that fits in memory decides; the balanced split stays unless another is
// shorter.
//
//   llama3-8b, 1f1b, p = 8, m = 16    4 4 4 4 4 5 5 2   balanced, 2.631 s
//                                     5 5 4 4 4 4 4 2   its surplus on the first stages, 2.516 s
#pragma once

#include <optional>

#include "sim/ir/program.h"
#include "sim/ir/timeline.h"
#include "sim/ir/valid_schedule.h"
#include "sim/model/timing.h"
#include "sim/predict/config.h"
#include "sim/predict/models.h"

namespace bubblescope::inline sim {

/// Returns the Config with the layers of every stage, if its costs are a model's and say neither
/// them nor how many the tables count as. They depend on neither faults nor noise, slow ranks or
/// arrivals, so that steps with and without these have the same layers. The Program is that of
/// choose_lowering(). Throws Error as find_models() does.
Config choose_layers(const ValidSchedule& schedule, const Program& program, Config config);

/// A Config with its layers, and the step that was simulated with them.
struct ChosenStep {
  struct Timed {
    Models models;
    Timing timing;
    Timeline timeline;
  };
  Config config;
  /// nullopt where no layers were chosen, or where the Config asks for another step: with faults,
  /// or with larger gradients.
  std::optional<Timed> timed = {};
};
ChosenStep choose_and_time_layers(const ValidSchedule& schedule, const Program& program,
                                  Config config);

/// Chooses the layers likewise, without a Program. If the schedule deadlocks, they are balanced.
Config choose_layers(const ValidSchedule& schedule, Config config);

}  // namespace bubblescope::inline sim
