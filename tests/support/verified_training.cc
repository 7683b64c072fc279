// Trains two steps without warm-up.
#include "tests/support/verified_training.h"

#include <gtest/gtest.h>

#include <variant>

#include "sim/ir/error.h"
#include "tests/support/as_written.h"

namespace bubblescope {

TrainingOptions small_model(std::int32_t blocks) {
  TrainingOptions options;
  options.model = {1, 8, 2, 13, 4, blocks};
  return options;
}

std::optional<Schedule> build_if_legal(const ScheduleDef& def, const Shape& shape) {
  try {
    return build_schedule(def, {shape, Profile::kNone, {}});
  } catch (const Error&) {
    return std::nullopt;
  }
}

Program lowered(const Schedule& schedule, Overlap overlap) {
  LowerOptions options;
  options.overlap = overlap;
  return std::get<Program>(lower(schedule, options));
}

Verification train(const Schedule& schedule, const Program& program, const TrainingOptions& options,
                   const Injections& injections) {
  Training training(schedule, program, options);
  const auto backend = find_backend("cpu").make({training.work(), injections}, program);
  const ExecuteOptions steps{1, kVerifiedSteps - 1, [&] { training.finish_step(); }};
  const Execution execution = execute(program, *backend, "cpu", steps);
  EXPECT_FALSE(execution.breakdown) << execution.breakdown->message;
  return verify(training.result(), train_serially(schedule, options, kVerifiedSteps));
}

}  // namespace bubblescope
