// Notes (to stderr) on a schedule that may not be the one that was meant.
#pragma once

#include <string>
#include <vector>

#include "sim/model/schedule_def.h"
#include "tools/options.h"

namespace bubblescope {

/// Schedules other than the one found by `name` whose name or alias differs from it by hyphens
/// alone, such as zb-1p for ZB1P.
std::vector<std::string> similar_names(const std::string& name);

/// "ZB1P is interleaved-zb; zb-1p is another schedule", where there are such.
void say_similar_names(const std::string& name);

/// Chunks and slices where flags give none: a framework's schedules (--profile) have one, as there.
std::int32_t usual_chunks(const ScheduleDef& def, const ShapeOptions& given);
std::int32_t usual_slices(const ScheduleDef& def, const ShapeOptions& given);

/// Which sizes a schedule takes that would be another schedule with one chunk or one slice.
void say_usual_sizes(const ScheduleDef& def, const ShapeOptions& given);

}  // namespace bubblescope
