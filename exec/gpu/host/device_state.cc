// Samples the state of devices and formats it.
#include "exec/gpu/host/device_state.h"

#include <algorithm>
#include <cstdio>

namespace bubblescope::exec {

namespace {

using Range = std::optional<StateRange>;

/// Returns the value as a range; nullopt if the call failed.
Range range_of(int status, unsigned int value) {
  if (status != 0) return std::nullopt;
  return StateRange{value, value};
}

Range merge(const Range& left, const Range& right) {
  if (!left || !right) return left ? left : right;
  return StateRange{std::min(left->min_value, right->min_value),
                    std::max(left->max_value, right->max_value)};
}

using Bits = std::optional<unsigned long long>;

Bits joined_bits(const Bits& left, const Bits& right) {
  if (!left || !right) return left ? left : right;
  return *left | *right;
}

std::string watts(std::int64_t milliwatts) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", static_cast<double>(milliwatts) / 1000);
  return text;
}

std::string range_text(const StateRange& range, std::string (*write)(std::int64_t)) {
  const std::string min_value = write(range.min_value);
  return range.min_value == range.max_value ? min_value
                                            : min_value + " to " + write(range.max_value);
}

std::string to_plain(std::int64_t value) { return std::to_string(value); }

std::string describe_state(const DeviceState& state) {
  std::vector<std::string> parts;
  if (state.sm_mhz) parts.push_back("SM " + range_text(*state.sm_mhz, to_plain) + " MHz");
  if (state.memory_mhz)
    parts.push_back("memory " + range_text(*state.memory_mhz, to_plain) + " MHz");
  if (state.power_milliwatts)
    parts.push_back(range_text(*state.power_milliwatts, watts) + " W" +
                    (state.power_limit_milliwatts
                         ? " of " + range_text(*state.power_limit_milliwatts, watts) + " W"
                         : ""));
  if (state.celsius) parts.push_back(range_text(*state.celsius, to_plain) + " C");
  if (state.throttle_reasons) {
    const std::string slowed = describe_throttle_reasons(*state.throttle_reasons);
    parts.push_back(slowed.empty() ? "not throttled" : "throttled by " + slowed);
  }
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
  return text;
}

DeviceState sample_device(const NvmlCalls& calls, void* device) {
  DeviceState state;
  state.samples = 1;
  unsigned int value = 0;
  const auto read = [&](NvmlCalls::Read call) {
    const int status = call(device, &value);
    return range_of(status, value);
  };
  const auto read_kind = [&](NvmlCalls::ReadKind call, int kind) {
    const int status = call(device, kind, &value);
    return range_of(status, value);
  };
  state.sm_mhz = read_kind(calls.clock_mhz, kNvmlClockSm);
  state.memory_mhz = read_kind(calls.clock_mhz, kNvmlClockMemory);
  state.power_milliwatts = read(calls.power_milliwatts);
  state.power_limit_milliwatts = read(calls.power_limit_milliwatts);
  state.celsius = read_kind(calls.temperature, kNvmlTemperatureGpu);
  unsigned long long reasons = 0;
  if (calls.throttle_reasons(device, &reasons) == 0) state.throttle_reasons = reasons;
  return state;
}

}  // namespace

DeviceState merge(const DeviceState& left, const DeviceState& right) {
  return {left.samples + right.samples,
          merge(left.sm_mhz, right.sm_mhz),
          merge(left.memory_mhz, right.memory_mhz),
          merge(left.power_milliwatts, right.power_milliwatts),
          merge(left.power_limit_milliwatts, right.power_limit_milliwatts),
          merge(left.celsius, right.celsius),
          joined_bits(left.throttle_reasons, right.throttle_reasons)};
}

DeviceMonitor::DeviceMonitor(const Nvml& nvml, const std::vector<std::string>& buses,
                             std::chrono::milliseconds interval)
    : nvml_(nvml), interval_(interval) {
  monitored_.obstacle = buses.empty() ? "" : nvml.obstacle;
  if (!nvml.obstacle.empty()) return;
  for (const std::string& bus : buses) {
    void* device = nullptr;
    if (const int status = nvml.calls.find_device(bus.c_str(), &device); status != 0) {
      monitored_.obstacle =
          "NVML does not know the device at " + bus + " (status " + std::to_string(status) + ")";
      devices_.clear();
      monitored_.devices.clear();
      return;
    }
    devices_.push_back(device);
    monitored_.devices.push_back({bus, {}, {}, {}, {}});
  }
  sample(&MonitoredDevice::before);
}

MonitoredDevices join(MonitoredDevices first, const MonitoredDevices& second) {
  if (first.obstacle.empty()) first.obstacle = second.obstacle;
  for (std::size_t at = 0; at < first.devices.size() && at < second.devices.size(); ++at) {
    MonitoredDevice& device = first.devices[at];
    const MonitoredDevice& later = second.devices[at];
    device.during = merge(device.during, later.during);
    device.after = later.after;
    device.steps.insert(device.steps.end(), later.steps.begin(), later.steps.end());
  }
  return first;
}

std::vector<double> find_step_clocks(const MonitoredDevices& monitored) {
  std::vector<double> clocks;
  for (const MonitoredDevice& device : monitored.devices) {
    clocks.resize(device.steps.size(), 0);
    for (std::size_t step = 0; step < device.steps.size(); ++step) {
      const Range& range = device.steps[step].sm_mhz;
      if (!range || step >= clocks.size()) return {};
      clocks[step] += static_cast<double>(range->min_value + range->max_value) / 2 /
                      static_cast<double>(monitored.devices.size());
    }
  }
  return clocks;
}

void DeviceMonitor::sample(DeviceState MonitoredDevice::*when) {
  for (std::size_t at = 0; at < devices_.size(); ++at) {
    DeviceState& state = monitored_.devices[at].*when;
    state = merge(state, sample_device(nvml_.calls, devices_[at]));
  }
}

void DeviceMonitor::begin_step() {
  if (devices_.empty()) return;
  if (!thread_.joinable()) thread_ = std::thread([this] { watch(); });
  const std::lock_guard lock(mutex_);
  for (MonitoredDevice& device : monitored_.devices) device.steps.emplace_back();
  in_step_ = true;
  changed_.notify_one();
}

/// Requires the lock.
void DeviceMonitor::sample_step() {
  for (std::size_t at = 0; at < devices_.size(); ++at) {
    const DeviceState state = sample_device(nvml_.calls, devices_[at]);
    MonitoredDevice& device = monitored_.devices[at];
    device.steps.back() = merge(device.steps.back(), state);
    device.during = merge(device.during, state);
  }
}

/// Takes a sample while the device is still warm, so that short steps have one, too.
void DeviceMonitor::end_step() {
  if (devices_.empty()) return;
  const std::lock_guard lock(mutex_);
  in_step_ = false;
  sample_step();
}

void DeviceMonitor::watch() {
  std::unique_lock lock(mutex_);
  while (!stops_) {
    changed_.wait(lock, [this] { return in_step_ || stops_; });
    if (!changed_.wait_for(lock, interval_, [this] { return !in_step_ || stops_; })) sample_step();
  }
}

std::optional<double> DeviceMonitor::read_sm_mhz() const {
  double sum = 0;
  for (void* const device : devices_) {
    unsigned int mhz = 0;
    if (nvml_.calls.clock_mhz(device, kNvmlClockSm, &mhz) != 0) return std::nullopt;
    sum += mhz;
  }
  if (devices_.empty()) return std::nullopt;
  return sum / static_cast<double>(devices_.size());
}

void DeviceMonitor::stop() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

/// If there were no steps, takes a sample in their place.
MonitoredDevices DeviceMonitor::finish() {
  stop();
  for (std::size_t at = 0; at < devices_.size(); ++at)
    if (monitored_.devices[at].during.samples == 0)
      monitored_.devices[at].during = sample_device(nvml_.calls, devices_[at]);
  sample(&MonitoredDevice::after);
  return monitored_;
}

std::string to_string(const MonitoredDevices& monitored) {
  if (!monitored.obstacle.empty())
    return "clocks, power and temperature could not be read: " + monitored.obstacle;
  std::string text;
  for (const MonitoredDevice& device : monitored.devices)
    text += (text.empty() ? "" : "\n") + device.bus +
            " while measured: " + describe_state(device.during);
  return text;
}

}  // namespace bubblescope::exec
