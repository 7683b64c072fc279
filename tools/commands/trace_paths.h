// Finds the traces that a command line names: files, and folders of them.
#pragma once

#include <string>
#include <vector>

#include "traces/files/trace_format.h"

namespace bubblescope::tools {

/// The content of all files.
struct ReadTraces {
  traces::ObservedTrace trace;
  std::vector<std::string> left_out;  ///< which files of which folder, in sentences
};

/// Reads every file, and of every folder those that hold a trace, in order of name. Files of a
/// folder that are clearly no traces are left out. Throws Error where a trace is given twice, a
/// file cannot be read, a folder has none, or a file of a folder is damaged, or named like its
/// traces without being one.
ReadTraces read_traces(const std::vector<std::string>& paths);

}  // namespace bubblescope::tools
