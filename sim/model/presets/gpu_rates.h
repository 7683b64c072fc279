// How presets of devices are written: rates as their vendors state them, and what kernels reach.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/model/gpu.h"

namespace bubblescope::inline sim {

/// The rates of a device as its vendor states them.
struct Rates {
  double peak_teraflops;
  double reachable_teraflops;
  double memory_gigabytes;  ///< as stated
  double memory_terabytes_per_second;
  double link_gigabytes_per_second;  ///< one way, as stated
  double network_gigabytes_per_second;
  double host_gigabytes_per_second;  ///< one way, as stated
  std::int32_t per_node = 8;
  /// The memory available to a program, in GiB: the total capacity in PyTorch's out-of-memory
  /// messages; 0: all that is stated.
  double program_gibibytes = 0;
};

/// The numbers that all devices of a generation share, and those that one device sustains.
struct Kernels {
  const char* generation = "";
  double sustained_teraflops = 0;  ///< 0: 95 % of what is reached
  KernelRates rates = {};
};

/// Returns the kernels of a device that sustains this many TFLOP/s.
Kernels with_rate(Kernels kernels, double teraflops);
/// A device whose GEMMs in 8 bits are this many times as fast as those in 16.
Kernels with_gain(Kernels kernels, double gain);
/// A device whose GEMMs sustain this many TFLOP/s for its power limit, and whose attention is
/// slower alike.
Kernels with_power(Kernels kernels, double teraflops);

inline constexpr Kernels kAmpere{"ampere", 257.45, {0, 50, 0, 0.65, 0.52, 108, 0, 0.034}};
inline constexpr Kernels kHopper{"hopper", 640, {0, 140, 1.9, 0.55, 0.48, 132}};  ///< of 700 W

inline constexpr const char* kBook = "stas00/ml-engineering@744d01e";
inline constexpr const char* kSheet = "NVIDIA's data sheet";
inline constexpr const char* kAssumed = "assumed, 80 % of the peak as on the H100";

/// The sources of those numbers that differ between devices.
struct Sources {
  std::string base = std::string(kBook) + ", compute/accelerator";
  std::string reachable = std::string(kBook) + ", compute/accelerator/benchmarks (MAMF)";
  std::string link = std::string(kBook) + ", network";
  std::string network = std::string(kBook) + ", network";
  std::string host = std::string(kBook) + ", network (PCI Express, 16 lanes)";
  std::string program = "the total capacity in PyTorch's out-of-memory messages";
  std::string attention = {};  ///< said where it is the device's own
};

/// Makes the preset of a device; `from` says where its numbers come from.
GpuDef define(const char* name, std::vector<std::string> aliases, const char* summary,
              const Rates& rates, const Kernels& kernels, const Sources& from = {});

}  // namespace bubblescope::inline sim
