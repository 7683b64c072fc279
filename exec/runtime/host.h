// Describes the machine that the program runs on, for reports and cost files.
#pragma once

#include <string>

namespace bubblescope::exec {

/// "2 cores of Intel(R) Xeon(R) ..., Linux 6.1"; counts the cores that this process may use.
std::string describe_host();

}  // namespace bubblescope::exec
