// Takes profiles of several processes apart that were merged into one file.
#pragma once

#include <string>
#include <vector>

#include "traces/measured/chrome_events.h"

namespace bubblescope::traces {

/// The events of every process that PyTorch's profiler recorded, in order of their ranks; a file of
/// one process as it is. What only one of the merged files can have stated, such as its place in
/// the job, is dropped. Throws Error where devices have rows of their own, because nothing says
/// which process ran a kernel.
std::vector<ChromeEvents> separate_profiles(ChromeEvents events, const std::string& file);

}  // namespace bubblescope::traces
