// Loads NVML.
#include "exec/gpu/host/nvml.h"

#include "exec/runtime/library_call.h"

namespace bubblescope::exec {

namespace {

/// One call was renamed in 2023; both names are tried.
bool find_all(void* library, NvmlCalls& calls) {
  return find_call(library, "nvmlInit_v2", calls.init) &&
         find_call(library, "nvmlShutdown", calls.shut_down) &&
         find_call(library, "nvmlDeviceGetHandleByPciBusId_v2", calls.find_device) &&
         find_call(library, "nvmlDeviceGetClockInfo", calls.clock_mhz) &&
         find_call(library, "nvmlDeviceGetPowerUsage", calls.power_milliwatts) &&
         find_call(library, "nvmlDeviceGetEnforcedPowerLimit", calls.power_limit_milliwatts) &&
         find_call(library, "nvmlDeviceGetTemperature", calls.temperature) &&
         (find_call(library, "nvmlDeviceGetCurrentClocksEventReasons", calls.throttle_reasons) ||
          find_call(library, "nvmlDeviceGetCurrentClocksThrottleReasons", calls.throttle_reasons));
}

struct Reason {
  unsigned long long bit;
  const char* name;
};

constexpr Reason kReasons[] = {
    {0x4, "power cap"},         {0x8, "hardware slowdown"},          {0x10, "sync boost"},
    {0x20, "thermal slowdown"}, {0x40, "hardware thermal slowdown"}, {0x80, "power brake"},
    {0x100, "display clocks"}};

}  // namespace

Nvml open_nvml(const std::string& library) {
  Nvml nvml;
  void* const opened = open_library({library});
  if (opened == nullptr)
    nvml.obstacle = library + " was not found";
  else if (!find_all(opened, nvml.calls))
    nvml.obstacle = library + " lacks a required function";
  else if (const int status = nvml.calls.init(); status != 0)
    nvml.obstacle = library + " failed to initialize (NVML status " + std::to_string(status) + ")";
  return nvml;
}

const Nvml& open_nvml() {
  static const Nvml nvml = open_nvml("libnvidia-ml.so.1");
  return nvml;
}

std::string describe_throttle_reasons(unsigned long long reasons) {
  std::string text;
  for (const Reason& reason : kReasons)
    if ((reasons & reason.bit) != 0) text += (text.empty() ? "" : ", ") + std::string(reason.name);
  return text;
}

}  // namespace bubblescope::exec
