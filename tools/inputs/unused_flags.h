// Warns about flags that a step has no use for.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/ir/program.h"
#include "sim/ir/schedule.h"
#include "tools/inputs/inputs.h"

namespace bubblescope::tools {

/// The ops of a step, which say what flags can have changed.
struct PredictedOps {
  const Schedule* schedule = nullptr;
  const Program* program = nullptr;
};

/// Whether a warning says which flags to add; commands that refuse these leave it out.
enum class Hints : std::uint8_t { kNone, kFlags };

/// Reports on stderr each flag that changed nothing in any of the steps, and why: "bubblescope:
/// --overlap changes nothing: no op of the step is in an overlapped pair".
void warn_of_unused_flags(const PredictInputs& inputs, std::span<const PredictedOps> steps,
                          Hints hints = Hints::kFlags);

/// Warns likewise, but not of a model's flags: plans distribute it in many ways.
void warn_of_unused_step_flags(const PredictInputs& inputs, std::span<const PredictedOps> steps,
                               Hints hints = Hints::kFlags);

/// Reports a --mem without a --cap in its unit, where nothing else shows that unit; `why` says so.
void warn_of_unused_unit(const UniformMemory& memory, const std::string& why);

/// Reports flags of memory that changed nothing in a measured step.
void warn_of_unused_memory(const UniformMemory& memory, const PredictedOps& step);

/// Reports the flags of shapes that none of these schedules takes; a file takes none. If only some
/// schedules take a flag and the results do not show it, it names those.
void warn_of_unused_shape(const PredictOptions& options, const std::vector<std::string>& names);

/// Whether a command uses a profile for more than the order: for the lists of a PyTorch release.
enum class ProfileUse : std::uint8_t { kOrder, kLists };

/// Reports the flags of shapes that the files among these do not take. Schedules by name refuse
/// such flags where they stand alone.
void warn_of_file_shapes(const PredictOptions& options, std::vector<std::string> names,
                         ProfileUse profile_use = ProfileUse::kOrder);

/// Reports flags of a step's end, for commands that look at orders alone.
void warn_of_unused_update(const PredictOptions& options, const char* why);

/// Reports the flags of times where orders alone are checked, and none depends on costs.
void warn_of_unused_times(const PredictOptions& options, const std::vector<std::string>& names);

/// Reports flags of times, memory and execution that a written order does not show.
void warn_of_unwritten_flags(const PredictOptions& options, const std::string& name);

}  // namespace bubblescope::tools
