// The state of devices during a run, with a library of the tests in place of NVML.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "exec/gpu/host/device_state.h"
#include "exec/gpu/host/gpu_machine.h"
#include "exec/gpu/host/nvml.h"
#include "tests/support/fake_gpu.h"
#include "tools/commands/measurement_json.h"

namespace bubblescope::tests {
namespace {

constexpr const char* kBus = "0000:01:00.0";

std::string write_json(const exec::MonitoredDevices& monitored) {
  std::string text;
  traces::JsonWriter json(text);
  tools::write_device_state_json(json, monitored);
  return text;
}

exec::Nvml open_fake() { return exec::open_nvml(BUBBLESCOPE_FAKE_NVML); }

TEST(DeviceState, IsThatOfTheDeviceAtItsAddress) {
  const exec::Nvml nvml = open_fake();
  ASSERT_EQ(nvml.obstacle, "");
  exec::DeviceMonitor watch(nvml, {kBus}, std::chrono::hours(1));
  watch.begin_step();
  watch.end_step();
  const exec::MonitoredDevices seen = watch.finish();
  ASSERT_EQ(seen.devices.size(), 1u);
  // The first sample, the second, at the end of the step, and the third.
  const auto sm = [](const exec::DeviceState& state) { return *state.sm_mhz; };
  EXPECT_EQ(sm(seen.devices[0].before), (exec::StateRange{1980, 1980}));
  EXPECT_EQ(sm(seen.devices[0].during), (exec::StateRange{1950, 1950}));
  EXPECT_EQ(sm(seen.devices[0].after), (exec::StateRange{1920, 1920}));
  EXPECT_FALSE(seen.devices[0].during.memory_mhz);
  EXPECT_EQ(seen.devices[0].before.throttle_reasons, 1u);
  EXPECT_EQ(exec::to_string(seen),
            "0000:01:00.0 while measured: SM 1950 MHz, 650.0 W of 700.0 W, 42 C, "
            "throttled by power cap");
  const std::string all =
      "\"power_milliwatts\":[650000,650000],\"power_limit_milliwatts\":"
      "[700000,700000],\"celsius\":";
  EXPECT_EQ(write_json(seen),
            "\"device_state\":[{\"bus\":\"0000:01:00.0\",\"before\":{\"samples\":1,\"looks\":1,"
            "\"sm_mhz\":"
            "[1980,1980]," +
                all +
                "[41,41],\"throttled_by\":\"\",\"slowed_by\":\"\"},\"during\":{\"samples\":1,"
                "\"looks\":1,\"sm_mhz\":"
                "[1950,1950]," +
                all +
                "[42,42],\"throttled_by\":\"power cap\",\"slowed_by\":\"power "
                "cap\"},\"after\":{\"samples\":1,\"looks\":1,"
                "\"sm_mhz\":[1920,1920]," +
                all +
                "[43,43],\"throttled_by\":\"power cap\",\"slowed_by\":\"power cap\"},"
                "\"steps\":[{\"samples\":1,\"looks\":1,\"sm_mhz\":[1950,1950]," +
                all + "[42,42],\"throttled_by\":\"power cap\",\"slowed_by\":\"power cap\"}]}]");
}

TEST(DeviceState, IsSampledWhileAStepRuns) {
  const exec::Nvml nvml = open_fake();
  exec::DeviceMonitor watch(nvml, {kBus}, std::chrono::milliseconds(1));
  watch.begin_step();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  watch.end_step();
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  const exec::MonitoredDevices seen = watch.finish();
  const exec::DeviceState& during = seen.devices[0].during;
  ASSERT_GE(during.samples, 2);
  // Every sample from the second on is 30 MHz lower, down to 480 MHz: a late thread may take more
  // than 50.
  const std::int64_t lowest = std::max<std::int64_t>(480, 1950 - 30 * (during.samples - 1));
  EXPECT_EQ(during.sm_mhz, (exec::StateRange{lowest, 1950}));
  EXPECT_EQ(during.celsius, (exec::StateRange{42, 42 + during.samples - 1}));
  // Not between steps: the last sample follows at once.
  EXPECT_EQ(seen.devices[0].after.celsius->min_value, 42 + during.samples);
}

// A sample at the beginning, one per step, and one at the end, each 30 MHz lower.
TEST(DeviceState, IsKnownOfEveryStep) {
  const exec::Nvml nvml = open_fake();
  exec::DeviceMonitor watch(nvml, {kBus}, std::chrono::hours(1));
  for (int step = 0; step < 3; ++step) {
    watch.begin_step();
    watch.end_step();
  }
  EXPECT_EQ(watch.read_sm_mhz(), 1860);
  const exec::MonitoredDevices seen = watch.finish();
  EXPECT_EQ(exec::find_step_clocks(seen), (std::vector<double>{1950, 1920, 1890}));
  EXPECT_EQ(seen.devices[0].during.sm_mhz, (exec::StateRange{1890, 1950}));
  const exec::MonitoredDevices twice = exec::join(seen, seen);
  EXPECT_EQ(exec::find_step_clocks(twice),
            (std::vector<double>{1950, 1920, 1890, 1950, 1920, 1890}));
}

TEST(DeviceState, OfARunThatNeverGotToItsStepsIsKnown) {
  const exec::Nvml nvml = open_fake();
  exec::DeviceMonitor watch(nvml, {kBus});
  const exec::MonitoredDevices seen = watch.finish();
  EXPECT_EQ(seen.devices[0].during.samples, 1);
  EXPECT_TRUE(exec::find_step_clocks(seen).empty());
}

TEST(DeviceState, IsNotKnownInOneLineWhereThereIsNoLibrary) {
  const exec::Nvml nvml = exec::open_nvml("libnone.so.1");
  exec::DeviceMonitor watch(nvml, {kBus});
  watch.begin_step();
  watch.end_step();
  EXPECT_FALSE(watch.read_sm_mhz());
  const exec::MonitoredDevices seen = watch.finish();
  EXPECT_TRUE(exec::find_step_clocks(seen).empty());
  EXPECT_EQ(exec::to_string(seen),
            "clocks, power and temperature could not be read: libnone.so.1 was not found");
  EXPECT_EQ(write_json(seen), "\"device_state\":\"libnone.so.1 was not found\"");
}

TEST(DeviceState, OfADeviceThatIsNotKnownIsNotMadeUp) {
  const exec::Nvml nvml = open_fake();
  exec::DeviceMonitor watch(nvml, {kBus, "0000:02:00.0"});
  EXPECT_EQ(exec::to_string(watch.finish()),
            "clocks, power and temperature could not be read: NVML does not know the device at "
            "0000:02:00.0 (status 6)");
}

// This library is not NVML.
TEST(DeviceState, ALibraryWithoutItsCallsIsNotCalled) {
  EXPECT_EQ(exec::open_nvml("libdl.so.2").obstacle, "libdl.so.2 lacks a required function");
}

TEST(DeviceState, IsSilentWhereNoDeviceHasAnAddress) {
  const exec::Nvml nvml = exec::open_nvml("libnone.so.1");
  exec::DeviceMonitor watch(nvml, {});
  watch.begin_step();
  watch.end_step();
  EXPECT_EQ(exec::to_string(watch.finish()), "");
}

// Two ranks are on the first of two devices and two on the second, which alone has an address.
TEST(DeviceState, IsAskedAtTheAddressesThatDevicesHave) {
  FakeGpu& gpu = reset_fake_gpu(2);
  const std::string_view bus = kBus;
  bus.copy(gpu.devices[1].bus, bus.size());
  const exec::GpuMachine machine(fake_gpu_calls(), 4, exec::Share::kGreen);
  EXPECT_EQ(machine.buses(), std::vector<std::string>{kBus});
}

// These are bits of nvml.h; idle devices and set clocks are not throttled.
TEST(DeviceState, NamesWhatSlowsADevice) {
  EXPECT_EQ(exec::describe_throttle_reasons(0x1 | 0x2), "");
  EXPECT_EQ(exec::describe_throttle_reasons(0x4 | 0x20 | 0x80),
            "power cap, thermal slowdown, power brake");
  EXPECT_EQ(exec::describe_throttle_reasons(0x8 | 0x10 | 0x40 | 0x100),
            "hardware slowdown, sync boost, hardware thermal slowdown, display clocks");
}

}  // namespace
}  // namespace bubblescope::tests
