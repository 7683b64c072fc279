// Tests what contradicts itself in a profile of PyTorch.
#include "traces/measured/contradictions.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "traces/measured/running_numbers.h"

namespace bubblescope::tests {
namespace {

using traces::Activity;

/// Builds the events of a profile; times are microseconds.
class Profile {
 public:
  Profile() { events_.threads.resize(3); }

  Profile& add(Activity activity, int start, int duration, std::int64_t number = -1,
               std::uint32_t thread = 0) {
    events_.profiled.push_back(
        {Nanos{1000} * start, Nanos{1000} * (start + duration), number, thread, activity});
    return *this;
  }
  Profile& number(std::int64_t number) {
    events_.numbers.add(number);
    return *this;
  }
  Profile& op(int start, int duration, std::int64_t op_class = 0) {
    ops_.spans.push_back(
        {{Nanos{1000} * start, Nanos{1000} * (start + duration)}, 0, -1, 0, op_class});
    return *this;
  }

  /// The only contradiction; empty if there is none.
  std::string find() const {
    const std::vector<std::string> found = traces::find_contradictions(events_, ops_);
    EXPECT_LE(found.size(), 1u) << found.back();
    return found.empty() ? "" : found.front();
  }

 private:
  traces::ChromeEvents events_;
  traces::ProfiledOps ops_;
};

bool has(const std::string& text, const char* part) { return text.find(part) != text.npos; }

TEST(RunningNumbers, AreCompleteFromTheirStartWithoutGapsOrTwins) {
  const auto are_complete = [](const std::vector<std::int64_t>& numbers) {
    traces::RunningNumbers running;
    for (const std::int64_t number : numbers) running.add(number);
    return running.are_complete();
  };
  EXPECT_TRUE(are_complete({}));
  EXPECT_TRUE(are_complete({2, 0, 1}));
  EXPECT_TRUE(are_complete({1, 2, 3}));
  EXPECT_FALSE(are_complete({0, 1, 3}));
  EXPECT_FALSE(are_complete({2, 3, 4}));
  EXPECT_FALSE(are_complete({0, 1, 1, 3}));
  EXPECT_FALSE(are_complete({0, 1, 2, 2}));
}

TEST(Contradictions, EventsAreMissingWhereNumbersAre) {
  EXPECT_EQ(Profile().number(0).number(1).number(2).find(), "");
  EXPECT_TRUE(has(Profile().number(0).number(2).find(), "1 of 3 events"));
}

TEST(Contradictions, NumbersFollowTheTimeOnEveryThread) {
  EXPECT_EQ(Profile().add(Activity::kCall, 0, 5, 7).add(Activity::kCall, 10, 5, 8).find(), "");
  EXPECT_EQ(Profile().add(Activity::kCall, 0, 5, 8).add(Activity::kCall, 10, 5, 7, 1).find(), "");
  EXPECT_TRUE(has(Profile().add(Activity::kCall, 0, 5, 8).add(Activity::kCall, 10, 5, 7).find(),
                  "contradicted the order"));
}

TEST(Contradictions, CallsLieWithinEachOtherOrApart) {
  EXPECT_EQ(Profile().add(Activity::kCall, 0, 50).add(Activity::kCall, 10, 40).find(), "");
  EXPECT_EQ(Profile().add(Activity::kCall, 0, 50).add(Activity::kCall, 49, 40).find(), "");
  EXPECT_TRUE(has(Profile().add(Activity::kCall, 0, 50).add(Activity::kCall, 10, 60).find(),
                  "begin within a call"));
  EXPECT_TRUE(has(Profile().add(Activity::kCall, 10, 60).op(0, 50).find(), "begin within a call"));
}

Profile with_flow() {
  return Profile().add(Activity::kCall, 0, 10).add(Activity::kGradientFlow, 0, 0, 1);
}

TEST(Contradictions, FlowsLeadFromACallToItsGradientFunction) {
  EXPECT_EQ(
      with_flow().add(Activity::kAutograd, 20, 10).add(Activity::kGradientEnd, 21, 0, 1).find(),
      "");
  EXPECT_TRUE(has(with_flow().add(Activity::kGradientEnd, 21, 0, 1).find(),
                  "in no call or gradient function"));
  EXPECT_TRUE(
      has(with_flow().add(Activity::kAutograd, 20, 10).add(Activity::kGradientEnd, 21, 0, 2).find(),
          "2 flows"));
}

TEST(Contradictions, GradientFunctionsLieInOps) {
  Profile profile;
  profile.add(Activity::kAutograd, 0, 100).add(Activity::kAutograd, 200, 100).op(0, 100);
  EXPECT_EQ(Profile(profile).op(200, 100).find(), "");
  EXPECT_TRUE(has(profile.op(400, 10).find(), "50.0 %"));
}

/// Two ops of two kernels each, launched ahead.
Profile with_kernels(int second_start, int second_duration) {
  return Profile()
      .op(0, 100)
      .add(Activity::kLaunch, 10, 5, 1)
      .add(Activity::kLaunch, 20, 5, 2)
      .op(200, 100)
      .add(Activity::kLaunch, 210, 5, 3)
      .add(Activity::kLaunch, 220, 5, 4)
      .add(Activity::kKernel, 1000, 1000, 1, 2)
      .add(Activity::kKernel, 2000, 1000, 2, 2)
      .add(Activity::kKernel, 3000, 1000, 3, 2)
      .add(Activity::kKernel, second_start, second_duration, 4, 2);
}

TEST(Contradictions, KernelsOfAStreamFollowEachOther) {
  EXPECT_EQ(with_kernels(4000, 1000).find(), "");
  EXPECT_EQ(with_kernels(3990, 1010).find(), "");  // a programmatic launch
  EXPECT_TRUE(has(with_kernels(3500, 1000).find(), "same stream"));
}

TEST(Contradictions, ALaunchedKernelStartsOnAFreeDevice) {
  // The device is free at 4000 us, and 20 us are usual before a kernel begins.
  EXPECT_TRUE(has(with_kernels(4500, 500).find(), "once for 480 us"));
  EXPECT_TRUE(has(with_kernels(4500, 500).find(), "another process used the device"));
}

TEST(Contradictions, LaunchesAndKernelsBelongTogether) {
  EXPECT_TRUE(
      has(with_kernels(4000, 1000).add(Activity::kLaunch, 230, 5, 9).find(), "had no kernel"));
  EXPECT_EQ(with_kernels(4000, 1000).add(Activity::kCopyCall, 230, 5, 9).find(), "");
}

}  // namespace
}  // namespace bubblescope::tests
