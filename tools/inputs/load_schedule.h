// From the name or the file of a schedule to a legal schedule, and to its Program.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "sim/ir/lower.h"
#include "sim/ir/program.h"
#include "sim/ir/valid_schedule.h"
#include "tools/inputs/inputs.h"

namespace bubblescope::tools {

/// Whether a word is a path (or "-") rather than a schedule's name.
bool is_schedule_file(const std::string& name_or_path);

/// Ranks and micro-batches of a schedule that has a shape of its own.
struct StatedSizes {
  std::string name;
  std::int32_t ranks = 1;
  std::int32_t microbatches = 1;
};

/// Whether flags leave open how many ranks or micro-batches a schedule has that is built by name.
bool has_open_sizes(const PredictOptions& options);

/// The shapes of the files among the names, but for stdin. Files that cannot be read state nothing
/// where others do; throws Error where none can be read.
std::vector<StatedSizes> read_stated_sizes(const std::vector<std::string>& names);

/// The shape of schedules that are built by name, with the sizes that flags leave open and these
/// schedules state. Throws Error where they differ in them.
ShapeOptions take_stated_sizes(const PredictOptions& options,
                               const std::vector<StatedSizes>& stated);

/// The shape of the schedules that are built by name among `names`, as flags give it; sizes that
/// flags leave open are those of the files, which a message says. Throws Error where files differ.
ShapeOptions complete_shape(const std::vector<std::string>& names, const PredictOptions& options);

/// The flags of a shape for the files among `names`: chunks and slices are meant for the schedules
/// that are built by name, if there are any, because each file states its own.
ShapeOptions leave_to_names(ShapeOptions shape, const std::vector<std::string>& names);

/// Whether the ops of a loaded schedule are priced from the inputs.
enum class CostUse : std::uint8_t { kPriced, kOrderOnly };

/// Builds the schedule of this name, or reads the file at this path ("-" is stdin); its schedule
/// may be illegal. A timeline's own times are never dropped silently: where ops are to be priced,
/// it is refused unless the flags name the costs. Throws Error when the name is unknown, the
/// shape is refused or the file cannot be read.
std::variant<ValidSchedule, InvalidSchedule> load_schedule(const std::string& name_or_path,
                                                           const PredictInputs& inputs,
                                                           CostUse use = CostUse::kPriced);

/// The same for callers that need a legal schedule. For others the grid is printed to stderr with
/// the culprit marked, and Error (Fault::kProblem) is thrown.
ValidSchedule load_valid_schedule(const std::string& name_or_path, const PredictInputs& inputs,
                                  CostUse use = CostUse::kPriced);

/// The schedule of one pipeline, before --lose makes another one of it.
ValidSchedule load_pipeline(const std::string& name_or_path, const PredictInputs& inputs,
                            CostUse use = CostUse::kPriced);

/// Lowers a schedule. Where it deadlocks, the grid is printed to stderr with the culprit marked,
/// and Error (Fault::kProblem) is thrown.
Program lower_or_explain(const ValidSchedule& schedule, const LowerOptions& options);

}  // namespace bubblescope::tools
