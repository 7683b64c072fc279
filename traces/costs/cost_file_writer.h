// Writes the cost files that traces/costs/cost_file.h reads.
#pragma once

#include <string>

#include "sim/model/cost_table.h"
#include "traces/json/json_writer.h"

namespace bubblescope::traces {

/// Writes a measured time as cost files state it, to the nanosecond: "1500ns".
std::string write_cost_duration(Nanos time);

/// Writes a table without what is at its default. `write_measured` writes the value of "measured",
/// which says where the numbers come from; without it there is none. Throws Error if the table has
/// a cluster: its devices' rates are rounded, so their bandwidths are not known. Lists are written
/// where all stages have them, per micro-batch, for the times of compute ops alone; else this
/// throws Error.
std::string write_cost_file(const CostTable& table, const WriteMembers& write_measured = {});

}  // namespace bubblescope::traces
