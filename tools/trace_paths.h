// Finds the traces that a command line names: files, and folders of them.
#pragma once

#include <string>
#include <vector>

#include "traces/trace_format.h"

namespace bubblescope {

/// Reads every file, and in every folder those that hold a trace, in order of name; other files of
/// a folder are listed in the notes. Throws Error where a trace is given twice, a file cannot be
/// read, or a folder has none.
ObservedTrace read_traces(const std::vector<std::string>& paths);

}  // namespace bubblescope
