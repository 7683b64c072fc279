// The fake device as a module that the program can open in place of bubblescope_cuda.so: rehearsals
// of everything that is done on a machine with a GPU.
//
// Its times are those of no real device; what counts is that ops of different work differ, and that
// ranks slow each other, products less than other kernels. Two variables make it less than ideal:
//
//   BUBBLESCOPE_SIMULATED_GPU_FAULT=hang:2.5    see simulated_faults.h
//   BUBBLESCOPE_SIMULATED_GPU_TRAITS=gaps,drift,small
//       events take time between ops; the clock drifts; there is memory for little
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "tests/support/fake_gpu.h"
#include "tests/support/simulated_faults.h"

namespace bubblescope::tests {

namespace {

constexpr unsigned int kNominalMhz = 1980;
constexpr unsigned int kClockStepMhz = 15;

/// The latest clock, which NVML reads on a thread of its own.
std::atomic<unsigned int> current_mhz = kNominalMhz;

/// A cold device loses 6 % of its clock within some 3 ms of work, and 1.5 % more or less as its
/// power changes; clocks are multiples of 15 MHz.
double drifting_speed(double nanos) {
  const double warm = 0.06 * (1 - std::exp(-nanos / 3e6));
  const double power = 0.015 * std::sin(nanos / 2e6);
  const double mhz = kNominalMhz * (1 - warm + power);
  current_mhz = kClockStepMhz * static_cast<unsigned int>(std::lround(mhz / kClockStepMhz));
  return static_cast<double>(current_mhz) / kNominalMhz;
}

DeviceTraits traits_of(const char* words) {
  const std::string_view text = words == nullptr ? "" : words;
  DeviceTraits traits;
  if (text.find("gaps") != text.npos) {
    traits.nanos_per_record = 80;
    traits.nanos_per_wait = 40;
  }
  if (text.find("drift") != text.npos) traits.speed = drifting_speed;
  return traits;
}

constexpr std::int64_t kSmallBytes = 3 << 20;

/// A device that is out of memory soon.
const BubblescopeGpu& with_little_memory(const FakeGpu& gpu, const BubblescopeGpu& calls) {
  static const FakeGpu& held = gpu;
  static const BubblescopeGpu& original = calls;
  static BubblescopeGpu small = calls;
  small.allocate = [](std::int32_t device, std::size_t bytes, void** memory) -> const char* {
    if (held.bytes + static_cast<std::int64_t>(bytes) > kSmallBytes) return "out of memory";
    return original.allocate(device, bytes, memory);
  };
  return small;
}

const BubblescopeGpu& start_simulated_gpu() {
  FakeGpu& gpu = reset_fake_gpu(1);
  const std::string_view bus = "0000:01:00.0";
  bus.copy(gpu.devices[0].bus, bus.size());
  gpu.times.nanos_per_multiplication = 0.05;
  gpu.times.nanos_per_entry = 20;
  gpu.times.nanos_per_copy = 2000;
  gpu.times.nanos_per_byte = 0.05;
  gpu.times.copies = {1.1, 1.15, 1.2, 1.25, 1.3, 1.35, 1.4, 1.45};
  gpu.times.gemms = {1.01, 1.02, 1.04, 1.05, 1.06, 1.08, 1.1};
  gpu.times.kernels = {1.05, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6};
  const char* const words = std::getenv("BUBBLESCOPE_SIMULATED_GPU_TRAITS");
  fake_gpu_clock().set_traits(traits_of(words));
  const bool is_small = words != nullptr && std::strstr(words, "small") != nullptr;
  const BubblescopeGpu& calls =
      is_small ? with_little_memory(gpu, fake_gpu_calls()) : fake_gpu_calls();
  return with_simulated_fault(calls, std::getenv("BUBBLESCOPE_SIMULATED_GPU_FAULT"));
}

}  // namespace

}  // namespace bubblescope::tests

const BubblescopeGpu* bubblescope_open_gpu(const char** error) {
  static const BubblescopeGpu& calls = bubblescope::tests::start_simulated_gpu();
  *error = nullptr;
  return &calls;
}

/// For the NVML of the tests: the clock of the multiprocessors.
extern "C" unsigned int bubblescope_simulated_sm_mhz() { return bubblescope::tests::current_mhz; }
