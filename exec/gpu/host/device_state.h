// The clocks, power and temperature of devices before, during and after measured steps: without
// them, nobody can tell a slow program from a hot device.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "exec/gpu/host/nvml.h"

namespace bubblescope {

/// From the least to the most that was seen.
struct StateRange {
  std::int64_t least = 0;
  std::int64_t most = 0;

  bool operator==(const StateRange&) const = default;
};

/// One device, over one or more looks at it. What it does not tell is empty.
struct DeviceState {
  std::int64_t looks = 0;
  std::optional<StateRange> sm_mhz;
  std::optional<StateRange> memory_mhz;
  std::optional<StateRange> power_milliwatts;
  std::optional<StateRange> power_limit_milliwatts;
  std::optional<StateRange> celsius;
  std::optional<unsigned long long> slowed_by;  ///< every bit that was seen

  bool operator==(const DeviceState&) const = default;
};

DeviceState look_at(const NvmlCalls& calls, void* device);

/// Of both.
DeviceState joined(const DeviceState& left, const DeviceState& right);

/// A device before, during and after measured steps.
struct WatchedDevice {
  std::string bus;
  DeviceState before;
  DeviceState during;
  DeviceState after;
};

struct WatchedDevices {
  std::vector<WatchedDevice> devices;
  std::string obstacle;  ///< why nothing is known of them; empty: something is
};

/// Looks at devices from a thread of its own, a few times a second, and so beside what enqueues.
class DeviceWatch {
 public:
  /// Looks once. `nvml` is not copied. Devices that NVML does not know leave an obstacle.
  DeviceWatch(const Nvml& nvml, const std::vector<std::string>& buses,
              std::chrono::milliseconds interval = std::chrono::milliseconds(200));
  ~DeviceWatch() { stop(); }
  DeviceWatch(const DeviceWatch&) = delete;
  DeviceWatch& operator=(const DeviceWatch&) = delete;

  /// The measured steps begin; a second call changes nothing.
  void begin();

  /// They have ended: looks once more, and tells what was seen.
  WatchedDevices finish();

 private:
  void stop();
  void look(DeviceState WatchedDevice::*when);

  const Nvml& nvml_;
  std::chrono::milliseconds interval_;
  WatchedDevices watched_;
  std::vector<void*> devices_;
  std::atomic<bool> stops_ = false;
  std::thread thread_;
};

/// A line per device: "0000:3b:00.0 while measured: SM 1755 to 1980 MHz, memory 2619 MHz, 310.5 to
/// 655.0 W of 700.0 W, 41 to 52 C, slowed by power cap"; or why nothing is known; empty where
/// nothing was asked.
std::string to_string(const WatchedDevices& watched);

/// `"device_state":[{"bus":...,"before":{...},"during":{"looks":12,"sm_mhz":[1755,1980],...,
/// "slowed_by":"power cap"},"after":{...}}]`, or `"device_state":"libnvidia-ml.so.1 is not found"`.
std::string device_state_json(const WatchedDevices& watched);

}  // namespace bubblescope
