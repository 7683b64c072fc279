// Trains two steps without warm-up.
#include "tests/support/verified_training.h"

#include <gtest/gtest.h>

#include <variant>

#include "sim/ir/error.h"
#include "tests/support/as_written.h"

namespace bubblescope::tests {

exec::TrainingOptions small_model(std::int32_t blocks) {
  exec::TrainingOptions options;
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

exec::Verification train(const Schedule& schedule, const Program& program,
                         const exec::TrainingOptions& options, const Injections& injections) {
  exec::Training training(schedule, program, options);
  const auto backend = exec::find_backend("cpu").make({training.work(), injections}, program);
  const exec::ExecuteOptions steps{1, kVerifiedSteps - 1, [&] { training.finish_step(); }};
  const exec::Execution execution = exec::execute(program, *backend, "cpu", steps);
  EXPECT_FALSE(execution.breakdown) << execution.breakdown->message;
  return exec::verify(training.stages().result(),
                      exec::train_serially(schedule, options, kVerifiedSteps));
}

}  // namespace bubblescope::tests
