// Finds what a format leaves out, by reading back what was written.
#pragma once

#include <string>
#include <vector>

#include "sim/ir/schedule.h"

namespace bubblescope::traces {

/// Compares a schedule with what a reader gets from the file that was written of it. Returns one
/// text per kind of loss, such as "the weights that ops read, so every op of a step reads the
/// same". Names are no loss, as a file has its own.
std::vector<std::string> find_losses(const Schedule& written, const Schedule& read_back);

}  // namespace bubblescope::traces
