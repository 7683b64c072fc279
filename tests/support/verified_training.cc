// Trains two steps without warm-up.
#include "tests/support/verified_training.h"

#include <gtest/gtest.h>

#include <utility>
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

namespace {

exec::Verification train(const Schedule& schedule, const Program& program,
                         const exec::TrainingOptions& options, exec::BackendRequest request) {
  exec::Training training(schedule, program, options);
  request.work = training.work();
  const auto backend = exec::find_backend("cpu").make(std::move(request), program);
  const exec::ExecuteOptions steps{1, kVerifiedSteps - 1, [&] { training.finish_step(); }};
  const exec::Execution execution = exec::execute(program, *backend, "cpu", steps);
  EXPECT_FALSE(execution.breakdown) << execution.breakdown->message;
  return exec::verify(training.stages().result(),
                      exec::train_serially(schedule, options, kVerifiedSteps));
}

}  // namespace

exec::Verification train(const Schedule& schedule, const Program& program,
                         const exec::TrainingOptions& options, const Injections& injections) {
  return train(schedule, program, options, exec::BackendRequest{{}, injections});
}

exec::Verification train_by_policy(const Schedule& schedule, const Program& program,
                                   const exec::TrainingOptions& options, exec::ReadyPolicy policy) {
  exec::BackendRequest request;
  request.policy = std::move(policy);
  return train(schedule, program, options, std::move(request));
}

}  // namespace bubblescope::tests
