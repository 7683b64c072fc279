// Finds the files and folders that hold traces, in the folder that a user names.
//
// Profilers write one file per rank. Often these lie deeper than the folder that a user has at
// hand, beside checkpoints and logs:
//
//   outputs/checkpoint/..., outputs/profile_traces/iteration_10/rank0_trace.json, ...
#pragma once

#include <string>
#include <vector>

namespace bubblescope::tools {

/// The files of a folder in the order of their names, with numbers by value. Throws Error if it
/// cannot be read.
std::vector<std::string> list_files(const std::string& folder);

/// Whether a file has the extension of a trace format, possibly packed.
bool has_trace_ending(const std::string& path);

/// Returns the first bytes of a file, unpacked.
std::string read_begin(const std::string& path);

/// Returns a text such as "a, b, c, d, e and 4 more".
std::string name_some(const std::vector<std::string>& names);

/// The traces below a folder that holds none itself, at most three levels deep.
struct InnerTraces {
  std::vector<std::string> folders;  ///< of one job; empty where several may be meant, or none is
  std::string advice;                ///< which to give instead; empty where no folder has a trace
};

/// Folders are of one job where there is one only, or if they lie in the same one and their names
/// differ by a number: that of a rank, or that of an iteration, as each profile of a job has.
InnerTraces find_inner_traces(const std::string& folder);

}  // namespace bubblescope::tools
