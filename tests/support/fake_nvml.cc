// A simulated NVML for tests, as a library to load. It knows one device, "0000:01:00.0". Each
// sample reads its SM clock first: the clock is 1980 MHz at the first sample and 30 MHz less at
// every later one, down to 480 MHz. The device draws 650 W of 700 W, and from the second sample on
// it is slowed by its power cap. It does not report its memory clock. Where the simulated GPU is
// told to drift, the SM clock is that of the simulated GPU.
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace {

std::atomic<unsigned int> samples = 0;
char device = 0;

using ReadClock = unsigned int (*)();

/// Null unless the simulated GPU is loaded and drifts.
ReadClock find_simulated_clock() {
  const char* const traits = std::getenv("BUBBLESCOPE_SIMULATED_GPU_TRAITS");
  const char* const module = std::getenv("BUBBLESCOPE_CUDA_MODULE");
  if (traits == nullptr || module == nullptr) return nullptr;
  if (std::string_view(traits).find("drift") == std::string_view::npos) return nullptr;
  void* const loaded = dlopen(module, RTLD_NOW | RTLD_NOLOAD);
  if (loaded == nullptr) return nullptr;
  return reinterpret_cast<ReadClock>(dlsym(loaded, "bubblescope_simulated_sm_mhz"));
}

constexpr int kNotSupported = 3;
constexpr int kNotFound = 6;

}  // namespace

extern "C" {

int nvmlInit_v2() {
  samples = 0;
  return 0;
}

int nvmlShutdown() { return 0; }

int nvmlDeviceGetHandleByPciBusId_v2(const char* bus, void** found) {
  *found = &device;
  return std::strcmp(bus, "0000:01:00.0") == 0 ? 0 : kNotFound;
}

int nvmlDeviceGetClockInfo(void*, int kind, unsigned int* mhz) {
  if (kind != 1) return kNotSupported;
  static const ReadClock read_clock = find_simulated_clock();
  const unsigned int fallen = std::min(30 * samples++, 1500u);
  *mhz = read_clock != nullptr ? read_clock() : 1980 - fallen;
  return 0;
}

int nvmlDeviceGetPowerUsage(void*, unsigned int* milliwatts) {
  *milliwatts = 650'000;
  return 0;
}

int nvmlDeviceGetEnforcedPowerLimit(void*, unsigned int* milliwatts) {
  *milliwatts = 700'000;
  return 0;
}

int nvmlDeviceGetTemperature(void*, int, unsigned int* celsius) {
  *celsius = 40 + samples;
  return 0;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(void*, unsigned long long* reasons) {
  *reasons = samples > 1 ? 0x4 : 0x1;
  return 0;
}

}  // extern "C"
