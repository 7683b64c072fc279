// Reads the environment, and recognizes NVIDIA's sanitizers by their libraries.
#include "exec/gpu/host/gpu_environment.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "exec/gpu/host/stream_plan.h"

namespace bubblescope::exec {

namespace {

constexpr const char* kQueuesVariable = "CUDA_DEVICE_MAX_CONNECTIONS";

std::optional<std::string> read_own(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

std::string read_mapped_files() {
  std::ostringstream text;
  text << std::ifstream("/proc/self/maps").rdbuf();
  return text.str();
}

}  // namespace

QueueSetting choose_queues(const ReadVariable& read) {
  const std::string max_queues = std::to_string(kMaxQueues);
  const std::optional<std::string> given = read(kQueuesVariable);
  if (!given || given->empty()) return {max_queues, ""};
  const unsigned long queues = std::strtoul(given->c_str(), nullptr, 10);
  if (queues >= kMaxQueues) return {*given, ""};
  return {max_queues, std::string(kQueuesVariable) + "=" + *given +
                          " would make lanes wait for each other; it is raised to " + max_queues};
}

void set_queues() {
  const QueueSetting setting = choose_queues(read_own);
  setenv(kQueuesVariable, setting.value.c_str(), 1);
  if (!setting.note.empty())
    std::fputs(("bubblescope: warning: " + setting.note + "\n").c_str(), stderr);
}

std::string find_blocking_tool(const ReadVariable& read, const std::string& mapped_files) {
  const std::optional<std::string> blocking = read("CUDA_LAUNCH_BLOCKING");
  if (blocking && !blocking->empty() && *blocking != "0")
    return "CUDA_LAUNCH_BLOCKING=" + *blocking;
  for (const char* const name : {"CUDA_INJECTION64_PATH", "LD_PRELOAD"})
    if (const std::optional<std::string> value = read(name);
        value && value->find("sanitizer-collection") != std::string::npos)
      return "compute-sanitizer";
  const bool is_mapped = mapped_files.find("libsanitizer-collection") != std::string::npos;
  return is_mapped ? "compute-sanitizer" : "";
}

std::string find_blocking_tool() { return find_blocking_tool(read_own, read_mapped_files()); }

}  // namespace bubblescope::exec
