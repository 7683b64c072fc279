// Reads the files of a job on all processors.
#pragma once

#include <exception>
#include <string>
#include <vector>

#include "tools/commands/stream_texts.h"
#include "traces/files/trace_format.h"

namespace bubblescope::tools {

/// The content of one file, or what refused it.
struct ReadOutcome {
  traces::ObservedTrace trace;
  std::exception_ptr failed;  ///< null where the file was read
};

/// Reads files at once, as many as there are processors and as memory allows. Paths in `streams`
/// are not opened; their texts are taken and parsed instead. Returns the outcomes in the order of
/// `paths`.
std::vector<ReadOutcome> read_in_parallel(const std::vector<std::string>& paths,
                                          const traces::NameRules& rules, StreamTexts& streams);

}  // namespace bubblescope::tools
