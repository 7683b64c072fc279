// NVML, which tells a device's clocks, power and temperature. It comes with the driver, and is
// opened where it is there; no header of it is needed.
#pragma once

#include <string>

namespace bubblescope {

/// What is asked of it, with the signatures of nvml.h. Every call returns 0, or why not: a device
/// need not know all of them.
struct NvmlCalls {
  using Read = int (*)(void* device, unsigned int* value);
  using ReadKind = int (*)(void* device, int kind, unsigned int* value);

  int (*init)() = nullptr;
  int (*shut_down)() = nullptr;
  /// By its address, "0000:3b:00.0".
  int (*find_device)(const char* bus, void** device) = nullptr;
  ReadKind clock_mhz = nullptr;
  Read power_milliwatts = nullptr;
  Read power_limit_milliwatts = nullptr;
  ReadKind temperature = nullptr;
  int (*slowed_by)(void* device, unsigned long long* reasons) = nullptr;
};

inline constexpr int kNvmlClockSm = 1;
inline constexpr int kNvmlClockMemory = 2;
inline constexpr int kNvmlTemperatureGpu = 0;

/// What opening came to: the calls, or why there are none.
struct Nvml {
  NvmlCalls calls;
  std::string obstacle;  ///< "libnvidia-ml.so.1 is not found"; empty: none
};

/// Opens the library once, for good, and starts it.
const Nvml& open_nvml();

/// The same of a library that tests name; each call opens it anew.
Nvml open_nvml(const std::string& library);

/// "power cap, heat" of the bits of slowed_by(), without those of a device that is idle or is set
/// to its clocks; empty for none.
std::string describe_slowdown(unsigned long long reasons);

}  // namespace bubblescope
