// Trains with a schedule on the cpu backend and verifies the result.
#pragma once

#include <optional>

#include "exec/runtime/execute.h"
#include "exec/training/verification.h"
#include "sim/ir/lower.h"
#include "sim/model/schedule_def.h"

namespace bubblescope::tests {

/// The number of steps that are trained.
inline constexpr std::int32_t kVerifiedSteps = 2;

/// A model with blocks of width 8 on every stage, sequences of four tokens, and SGD.
exec::TrainingOptions small_model(std::int32_t blocks = 1);

/// Empty if the schedule refuses the shape.
std::optional<Schedule> build_if_legal(const ScheduleDef& def, const Shape& shape);

Program lowered(const Schedule& schedule, Overlap overlap = Overlap::kAtomic);

/// Returns the verification of the training; a breakdown fails the test.
exec::Verification train(const Schedule& schedule, const Program& program,
                         const exec::TrainingOptions& options, const Injections& injections = {});

/// The same, where ranks choose by a policy.
exec::Verification train_by_policy(const Schedule& schedule, const Program& program,
                                   const exec::TrainingOptions& options, exec::ReadyPolicy policy);

}  // namespace bubblescope::tests
