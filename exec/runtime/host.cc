// Describes the host.
#include "exec/runtime/host.h"

#include <sys/utsname.h>

#include <fstream>
#include <thread>

#include "sim/ir/counted.h"

namespace bubblescope::exec {

namespace {

/// The processor's name as Linux reports it; empty on other systems.
std::string read_processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.rfind("model name", 0) == 0 && line.find(": ") != std::string::npos)
      return line.substr(line.find(": ") + 2);
  return "";
}

}  // namespace

std::string describe_host() {
  const std::string processor = read_processor_name();
  utsname system{};
  uname(&system);
  return counted(std::thread::hardware_concurrency(), "core") + " of " +
         (processor.empty() ? std::string(system.machine) : processor) + ", " + system.sysname +
         " " + system.release;
}

}  // namespace bubblescope::exec
