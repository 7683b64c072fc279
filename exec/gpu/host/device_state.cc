// Samples the state of devices and formats it.
#include "exec/gpu/host/device_state.h"

#include <algorithm>
#include <cstdio>

namespace bubblescope {

namespace {

using Range = std::optional<StateRange>;

/// Empty if the call failed.
Range range_of(int status, unsigned int value) {
  if (status != 0) return std::nullopt;
  return StateRange{value, value};
}

Range joined(const Range& left, const Range& right) {
  if (!left || !right) return left ? left : right;
  return StateRange{std::min(left->least, right->least), std::max(left->most, right->most)};
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
  const std::string least = write(range.least);
  return range.least == range.most ? least : least + " to " + write(range.most);
}

std::string plain(std::int64_t value) { return std::to_string(value); }

std::string describe(const DeviceState& state) {
  std::vector<std::string> parts;
  if (state.sm_mhz) parts.push_back("SM " + range_text(*state.sm_mhz, plain) + " MHz");
  if (state.memory_mhz) parts.push_back("memory " + range_text(*state.memory_mhz, plain) + " MHz");
  if (state.power_milliwatts)
    parts.push_back(range_text(*state.power_milliwatts, watts) + " W" +
                    (state.power_limit_milliwatts
                         ? " of " + range_text(*state.power_limit_milliwatts, watts) + " W"
                         : ""));
  if (state.celsius) parts.push_back(range_text(*state.celsius, plain) + " C");
  if (state.slowed_by) {
    const std::string slowed = describe_slowdown(*state.slowed_by);
    parts.push_back(slowed.empty() ? "not slowed" : "slowed by " + slowed);
  }
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
  return text;
}

std::string range_json(const char* name, const Range& range) {
  if (!range) return "";
  return std::string(",\"") + name + "\":[" + plain(range->least) + "," + plain(range->most) + "]";
}

std::string state_json(const DeviceState& state) {
  return "{\"looks\":" + plain(state.looks) + range_json("sm_mhz", state.sm_mhz) +
         range_json("memory_mhz", state.memory_mhz) +
         range_json("power_milliwatts", state.power_milliwatts) +
         range_json("power_limit_milliwatts", state.power_limit_milliwatts) +
         range_json("celsius", state.celsius) +
         (state.slowed_by ? ",\"slowed_by\":\"" + describe_slowdown(*state.slowed_by) + "\"" : "") +
         "}";
}

}  // namespace

DeviceState look_at(const NvmlCalls& calls, void* device) {
  DeviceState state;
  state.looks = 1;
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
  if (calls.slowed_by(device, &reasons) == 0) state.slowed_by = reasons;
  return state;
}

DeviceState joined(const DeviceState& left, const DeviceState& right) {
  return {left.looks + right.looks,
          joined(left.sm_mhz, right.sm_mhz),
          joined(left.memory_mhz, right.memory_mhz),
          joined(left.power_milliwatts, right.power_milliwatts),
          joined(left.power_limit_milliwatts, right.power_limit_milliwatts),
          joined(left.celsius, right.celsius),
          joined_bits(left.slowed_by, right.slowed_by)};
}

DeviceWatch::DeviceWatch(const Nvml& nvml, const std::vector<std::string>& buses,
                         std::chrono::milliseconds interval)
    : nvml_(nvml), interval_(interval) {
  watched_.obstacle = buses.empty() ? "" : nvml.obstacle;
  if (!nvml.obstacle.empty()) return;
  for (const std::string& bus : buses) {
    void* device = nullptr;
    if (const int status = nvml.calls.find_device(bus.c_str(), &device); status != 0) {
      watched_.obstacle =
          "NVML does not know the device at " + bus + " (status " + std::to_string(status) + ")";
      devices_.clear();
      watched_.devices.clear();
      return;
    }
    devices_.push_back(device);
    watched_.devices.push_back({bus, {}, {}, {}});
  }
  look(&WatchedDevice::before);
}

void DeviceWatch::look(DeviceState WatchedDevice::*when) {
  for (std::size_t at = 0; at < devices_.size(); ++at) {
    DeviceState& state = watched_.devices[at].*when;
    state = joined(state, look_at(nvml_.calls, devices_[at]));
  }
}

/// The first sample is taken after one interval, because an idle device needs time to raise its
/// clocks.
void DeviceWatch::begin() {
  if (devices_.empty() || thread_.joinable()) return;
  thread_ = std::thread([this] {
    auto next = std::chrono::steady_clock::now() + interval_;
    while (!stops_) {
      if (std::chrono::steady_clock::now() < next) {
        std::this_thread::sleep_for(std::min(interval_, std::chrono::milliseconds(10)));
        continue;
      }
      look(&WatchedDevice::during);
      next += interval_;
    }
  });
}

void DeviceWatch::stop() {
  stops_ = true;
  if (thread_.joinable()) thread_.join();
}

/// If the steps ended before the first sample, takes one now, while the device is still warm.
WatchedDevices DeviceWatch::finish() {
  stop();
  for (std::size_t at = 0; at < devices_.size(); ++at)
    if (watched_.devices[at].during.looks == 0)
      watched_.devices[at].during = look_at(nvml_.calls, devices_[at]);
  look(&WatchedDevice::after);
  return watched_;
}

std::string to_string(const WatchedDevices& watched) {
  if (!watched.obstacle.empty())
    return "clocks, power and temperature were not noted: " + watched.obstacle;
  std::string text;
  for (const WatchedDevice& device : watched.devices)
    text += (text.empty() ? "" : "\n") + device.bus + " while measured: " + describe(device.during);
  return text;
}

std::string device_state_json(const WatchedDevices& watched) {
  if (!watched.obstacle.empty()) return "\"device_state\":\"" + watched.obstacle + "\"";
  std::string list;
  for (const WatchedDevice& device : watched.devices)
    list += (list.empty() ? "" : ",") + std::string("{\"bus\":\"") + device.bus +
            "\",\"before\":" + state_json(device.before) +
            ",\"during\":" + state_json(device.during) + ",\"after\":" + state_json(device.after) +
            "}";
  return "\"device_state\":[" + list + "]";
}

}  // namespace bubblescope
