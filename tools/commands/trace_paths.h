// Finds the traces that a command line names: files, and folders of them.
#pragma once

#include <string>
#include <vector>

#include "tools/commands/stream_texts.h"
#include "traces/files/trace_format.h"

namespace bubblescope::tools {

/// Reads every file, and all traces of every folder in order of name. Files of a folder that are
/// clearly not traces are left out, as the remarks say; of a folder without traces those below it
/// are read where they are of one job. Throws Error if a trace is given twice, a file cannot be
/// read, or a folder has no trace, and if a file of a folder is damaged or is named like its traces
/// without being one. `rules_file` says what names mean; empty for their usual meaning. `streams`
/// has the texts of the paths that are streams, and gives them away.
traces::ObservedTrace read_traces(const std::vector<std::string>& paths,
                                  const std::string& rules_file, StreamTexts& streams);

}  // namespace bubblescope::tools
