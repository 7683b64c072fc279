// The settings on which a training's numbers depend, bit for bit. A checkpoint can be resumed only
// by a run with equal ones.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "exec/runtime/processes.h"
#include "exec/training/serial_training.h"
#include "sim/ir/program.h"

namespace bubblescope::exec {

/// Names, in backquotes where they are fields that a flag sets, and their values:
/// {"`hidden_size`", "32"}.
using TrainingIdentity = std::vector<std::pair<std::string, std::string>>;

/// Without what computes, see ResumableTraining.
TrainingIdentity identify_training(const Schedule& schedule, const Program& program,
                                   const TrainingOptions& options, const Processes& processes);

/// "`seed` 1 there and 2 here, `precision` bf16 there and fp32 here"; empty if they are equal.
std::string describe_differences(const TrainingIdentity& there, const TrainingIdentity& here);

/// A digest of the weights of all stages. Equal weights, bit for bit, have equal digests.
std::uint64_t digest_weights(const std::vector<Stage>& stages);

}  // namespace bubblescope::exec
