// The clock of simulated devices.
#include "tests/support/device_clock.h"

#include <gtest/gtest.h>

namespace bubblescope::tests {
namespace {

TEST(DeviceClock, KernelsOfBusyStreamsSlowEachOther) {
  DeviceClock clock;
  const SlowdownLaw law{1.5};
  const std::size_t first = clock.add_stream(0);
  const std::size_t second = clock.add_stream(0);
  clock.run(first, 100, &law);
  clock.run(second, 50, &law);
  const std::int64_t first_end = clock.record(first);
  const std::int64_t second_end = clock.record(second);
  // They run together until the second has done 50 after 75; the first has then done 50 and
  // continues alone.
  EXPECT_DOUBLE_EQ(*clock.time_of(second_end), 75);
  EXPECT_DOUBLE_EQ(*clock.time_of(first_end), 125);
}

TEST(DeviceClock, ABlockedStreamContinuesWhenItsWordIsSet) {
  DeviceClock clock;
  std::uint32_t word = 0;
  const std::size_t stream = clock.add_stream(0);
  clock.run(stream, 10);
  clock.block(stream, &word);
  const std::int64_t mark = clock.record(stream);
  EXPECT_FALSE(clock.time_of(mark));
  word = 1;
  EXPECT_DOUBLE_EQ(*clock.time_of(mark), 10);
}

TEST(DeviceClock, BlocksCanExpire) {
  DeviceClock clock;
  const std::uint32_t never = 0;
  const std::size_t stream = clock.add_stream(0);
  EXPECT_FALSE(clock.is_blocked());
  clock.block(stream, &never);
  const std::int64_t mark = clock.record(stream);
  EXPECT_TRUE(clock.is_blocked());
  clock.expire_blocks();
  EXPECT_FALSE(clock.is_blocked());
  EXPECT_DOUBLE_EQ(*clock.time_of(mark), 0);
}

// The event after the first kernel is at 10 and takes 3, the wait 2: the second kernel ends at 25.
TEST(DeviceClock, EventsLeaveGapsBehindThem) {
  DeviceClock clock;
  clock.set_traits({3, 2, {}});
  const std::size_t stream = clock.add_stream(0);
  clock.run(stream, 10);
  const std::int64_t between = clock.record(stream);
  clock.wait(stream, between);
  clock.run(stream, 10);
  EXPECT_DOUBLE_EQ(*clock.time_of(clock.record(stream)), 25);
  EXPECT_DOUBLE_EQ(*clock.time_of(between), 10);
}

// At half of its clock from 10 on, the device takes 20 for the second kernel of 10. Copies, and
// kernels that do not count cycles, take their time.
TEST(DeviceClock, OnlyKernelsThatCountCyclesFollowTheClock) {
  DeviceClock clock;
  clock.set_traits({0, 0, [](double nanos) { return nanos < 10 ? 1 : 0.5; }});
  const SlowdownLaw none;
  const std::size_t kernels = clock.add_stream(0);
  const std::size_t sleeping = clock.add_stream(0);
  const std::size_t copies = clock.add_stream(0);
  clock.run(kernels, 10, &none, true);
  clock.run(kernels, 10, &none, true);
  clock.run(sleeping, 20);
  clock.run_beside(copies, 20, none);
  const std::int64_t slept = clock.record(sleeping);
  const std::int64_t copied = clock.record(copies);
  EXPECT_DOUBLE_EQ(*clock.time_of(clock.record(kernels)), 30);
  EXPECT_DOUBLE_EQ(*clock.time_of(slept), 20);
  EXPECT_DOUBLE_EQ(*clock.time_of(copied), 20);
  EXPECT_DOUBLE_EQ(clock.speed(), 0.5);
}

}  // namespace
}  // namespace bubblescope::tests
