// NVML, which reports clocks, power and temperature of devices. It comes with the driver and is
// loaded at run time, without its header.
#pragma once

#include <string>

namespace bubblescope::exec {

/// The calls that we use, with the signatures of nvml.h. Each returns 0 on success; a device need
/// not support all of them.
struct NvmlCalls {
  using Read = int (*)(void* device, unsigned int* value);
  using ReadKind = int (*)(void* device, int kind, unsigned int* value);

  int (*init)() = nullptr;
  int (*shut_down)() = nullptr;
  /// Finds a device by its PCI address, "0000:3b:00.0".
  int (*find_device)(const char* bus, void** device) = nullptr;
  ReadKind clock_mhz = nullptr;
  Read power_milliwatts = nullptr;
  Read power_limit_milliwatts = nullptr;
  ReadKind temperature = nullptr;
  int (*throttle_reasons)(void* device, unsigned long long* reasons) = nullptr;
};

inline constexpr int kNvmlClockSm = 1;
inline constexpr int kNvmlClockMemory = 2;
inline constexpr int kNvmlTemperatureGpu = 0;

/// The calls, or the reason why there are none.
struct Nvml {
  NvmlCalls calls;
  std::string obstacle;  ///< "libnvidia-ml.so.1 was not found"; empty: none
};

/// Loads and initializes the library once; it is never unloaded.
const Nvml& open_nvml();

/// Loads another library, for tests; every call loads it again.
Nvml open_nvml(const std::string& library);

/// Returns a text such as "power cap, thermal slowdown" for the bits of throttle_reasons(); empty
/// if there are none. It leaves out bits which only say that the device is idle or that its clocks
/// are set.
std::string describe_throttle_reasons(unsigned long long reasons);

}  // namespace bubblescope::exec
