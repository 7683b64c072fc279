// Clocks, power and temperature of devices before, during and after the measured steps, and in each
// of them. They tell whether a slow run or a slow step was slowed by the device.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "exec/gpu/host/nvml.h"

namespace bubblescope::exec {

/// The smallest and the largest sample.
struct StateRange {
  std::int64_t min_value = 0;
  std::int64_t max_value = 0;

  bool operator==(const StateRange&) const = default;
};

/// One device, over one or more samples. Values that the device does not report are empty.
struct DeviceState {
  std::int64_t samples = 0;
  std::optional<StateRange> sm_mhz;
  std::optional<StateRange> memory_mhz;
  std::optional<StateRange> power_milliwatts;
  std::optional<StateRange> power_limit_milliwatts;
  std::optional<StateRange> celsius;
  std::optional<unsigned long long> throttle_reasons;  ///< every throttle reason seen

  bool operator==(const DeviceState&) const = default;
};

/// Merges the samples of both.
DeviceState merge(const DeviceState& left, const DeviceState& right);

/// A device before, during and after the measured steps.
struct MonitoredDevice {
  std::string bus;
  DeviceState before;
  DeviceState during;  ///< in all steps
  DeviceState after;
  std::vector<DeviceState> steps;  ///< [measured step]
};

struct MonitoredDevices {
  std::vector<MonitoredDevice> devices;
  std::string obstacle;  ///< why no device could be read; empty: none
};

/// Returns the devices over two blocks of steps, the second one after the first.
MonitoredDevices join(MonitoredDevices first, const MonitoredDevices& second);

/// The mean SM clock in each measured step; empty if it is not known of every step and device.
std::vector<double> find_step_clocks(const MonitoredDevices& monitored);

/// Samples devices at the end of every step and, from a background thread, during long ones.
class DeviceMonitor {
 public:
  /// Takes the first sample. `nvml` is not copied. A device that NVML does not know sets the
  /// obstacle.
  DeviceMonitor(const Nvml& nvml, const std::vector<std::string>& buses,
                std::chrono::milliseconds interval = std::chrono::milliseconds(50));
  ~DeviceMonitor() { stop(); }
  DeviceMonitor(const DeviceMonitor&) = delete;
  DeviceMonitor& operator=(const DeviceMonitor&) = delete;

  /// Call around every measured step.
  void begin_step();
  void end_step();

  /// The SM clock now, the mean over devices; empty if it is not known.
  std::optional<double> read_sm_mhz() const;

  /// Call when the steps have ended. Takes the last sample and returns all.
  MonitoredDevices finish();

 private:
  void stop();
  void watch();
  void sample(DeviceState MonitoredDevice::*when);
  void sample_step();

  const Nvml& nvml_;
  std::chrono::milliseconds interval_;
  std::vector<void*> devices_;
  std::mutex mutex_;  ///< guards what follows
  std::condition_variable changed_;
  MonitoredDevices monitored_;
  bool in_step_ = false;
  bool stops_ = false;
  std::thread thread_;
};

/// One line per device: "0000:3b:00.0 while measured: SM 1755 to 1980 MHz, memory 2619 MHz, 310.5
/// to 655.0 W of 700.0 W, 41 to 52 C, throttled by power cap". If nothing could be read, the text
/// says why; if no device was watched, it is empty.
std::string to_string(const MonitoredDevices& monitored);

}  // namespace bubblescope::exec
