// Reads how the environment of the process changes the driver: the number of queues, and tools that
// make every launch wait.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace bubblescope::exec {

/// Reads an environment variable; empty if it is not set.
using ReadVariable = std::function<std::optional<std::string>(const char* name)>;

/// The value for CUDA_DEVICE_MAX_CONNECTIONS, which the driver reads once when it starts, and a
/// sentence if that overrides a smaller value of the user.
struct QueueSetting {
  std::string value;
  std::string note;
};
QueueSetting choose_queues(const ReadVariable& read);

/// Sets CUDA_DEVICE_MAX_CONNECTIONS, and prints the note once. Call before the driver starts.
void set_queues();

/// Why launches may wait for the ends of kernels in this process, so that no step can be held back
/// until it is enqueued: "CUDA_LAUNCH_BLOCKING=1". Empty if nothing is known of the kind.
/// `mapped_files` lists the files in the memory of the process (/proc/self/maps).
std::string find_blocking_tool(const ReadVariable& read, const std::string& mapped_files);

/// Looks for such a tool in this process.
std::string find_blocking_tool();

}  // namespace bubblescope::exec
