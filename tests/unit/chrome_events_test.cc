// Times of Chrome traces, which are decimal microseconds.
#include "traces/measured/chrome_events.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "sim/ir/error.h"
#include "tests/support/error_text.h"
#include "traces/measured/other_slices.h"

namespace bubblescope::tests {
namespace {

TEST(ChromeEvents, TimesAreExactNanoseconds) {
  const struct {
    const char* text;
    std::optional<Nanos> nanos;
  } cases[] = {
      {"0", 0},
      {"12", 12'000},
      {"848671.6747283936", 848'671'675},
      {"1712195495505583.125", 1'712'195'495'505'583'125},  // more digits than a double has
      {"-1.5", -1'500},
      {"0.0004", 0},
      {"0.0005", 1},
      {"1e-05", 0},
      {"1.5e3", 1'500'000},
      {"2300000000000000", 2'300'000'000'000'000'000},
      {"4000000000000000", std::nullopt},  // the sum of two such times would overflow
      {"9999999999999999999", std::nullopt},
      {"1e300", std::nullopt},
      {"", std::nullopt},
      {"1.2.3", std::nullopt},
      {"abc", std::nullopt},
  };
  for (const auto& one : cases) EXPECT_EQ(traces::parse_micros(one.text), one.nanos) << one.text;
}

traces::ChromeEvents read(const std::string& events) {
  traces::NameMatcher names;
  return traces::read_chrome_events("[" + events + "]", "t.json", names);
}

std::string bound(const char* phase, const char* name, int at, const std::string& arguments) {
  return std::string(R"({"ph":")") + phase + R"(","name":")" + name + R"(","pid":2,"tid":1,"ts":)" +
         std::to_string(at) + R"(,"args":{)" + arguments + "}}";
}

static_assert(sizeof(traces::OtherSlice) <= 32);  // a trace may have a hundred million

TEST(ChromeEvents, OfSlicesThatAreNotOpsKeepNamesAndNumbersOnce) {
  const auto slice = [](const std::string& name, int start, int rank) {
    return R"({"ph":"X","name":")" + name + R"(","pid":0,"tid":0,"ts":)" + std::to_string(start) +
           R"(,"dur":2,"args":{"step":4,"pp":)" + std::to_string(rank) + "}}";
  };
  const traces::ChromeEvents events =
      read(slice("logging", 1, 0) + "," + slice("checkpoint", 5, 0) + "," + slice("logging", 9, 1));
  const traces::OtherSlices& others = events.other_slices;
  ASSERT_EQ(others.all().size(), 3u);
  const traces::OtherSlice& last = others.all()[2];
  EXPECT_EQ(last.name, others.all()[0].name);
  EXPECT_EQ(others.all()[1].numbers, others.all()[0].numbers);
  EXPECT_EQ(others.name_of(last), "logging");
  EXPECT_EQ(others.name_of(others.all()[1]), "checkpoint");
  EXPECT_EQ(others.numbers_of(last).pp_rank, 1);
  EXPECT_EQ(others.numbers_of(last).step, 4);
  EXPECT_EQ(others.numbers_of(last).stage, std::nullopt);
  EXPECT_EQ(last.start, 9'000);
  EXPECT_EQ(last.end, 11'000);
}

// As torch_npu writes them.
TEST(ChromeEvents, TimesMayBeInQuotes) {
  const traces::ChromeEvents events =
      read(R"({"ph":"X","name":"0F0","pid":0,"tid":0,"ts":"10.5","dur":"2.25"})");
  ASSERT_EQ(events.slices.size(), 1u);
  EXPECT_EQ(events.slices[0].start, 10'500);
  EXPECT_EQ(events.slices[0].end, 12'750);
}

// As MegatronApp writes them.
TEST(ChromeEvents, EitherEndOfASliceMayHaveArguments) {
  const traces::ChromeEvents events = read(
      bound("B", "forward", 5, R"("iteration":10)") + "," +
      bound("E", "forward", 9, R"("iteration":11,"microbatch":3,"model_chunk":1,"pp_rank":2)"));
  ASSERT_EQ(events.slices.size(), 1u);
  const traces::ChromeSlice& slice = events.slices[0];
  EXPECT_EQ(slice.start, 5'000);
  EXPECT_EQ(slice.end, 9'000);
  EXPECT_EQ(slice.step, 10);  // the begin decides
  EXPECT_EQ(slice.microbatch, 3);
  EXPECT_EQ(slice.chunk, 1);
  EXPECT_EQ(slice.pp_rank, 2);
}

TEST(ChromeEvents, NumbersOfMicrobatchesAreSpeltInManyWays) {
  for (const char* key : {"mb_id", "microbatch", "micro_batch", "micro-batch", "micro_batch_id"}) {
    const traces::ChromeEvents events =
        read(R"({"ph":"X","name":"bwd","pid":0,"tid":0,"ts":0,"dur":1,"args":{")" +
             std::string(key) + R"(":7}})");
    ASSERT_EQ(events.slices.size(), 1u) << key;
    EXPECT_EQ(events.slices[0].microbatch, 7);
  }
}

// Functions of that name are no ops.
TEST(ChromeEvents, WordsForKindsAreOpsOnlyWithAMicrobatch) {
  EXPECT_TRUE(
      read(bound("B", "forward", 5, "") + "," + bound("E", "forward", 9, "")).slices.empty());
}

TEST(ChromeEvents, UnknownSlicesOfTwoEventsAreListed) {
  const traces::ChromeEvents events =
      read(bound("B", "compute_3", 5, "") + "," + bound("E", "compute_3", 9, ""));
  EXPECT_NE(events.names.describe().find("'compute_3' (1 like it)"), std::string::npos)
      << events.names.describe();
}

// MegatronApp's begins of iterations have none.
TEST(ChromeEvents, UnknownSlicesOfTwoEventsNeedNoTime) {
  EXPECT_TRUE(read(R"({"ph":"B","name":"iteration","pid":2,"tid":1},)"
                   R"({"ph":"E","name":"iteration","pid":2,"tid":1})")
                  .slices.empty());
  EXPECT_EQ(error_of([&] { read(R"({"ph":"B","name":"0F0","pid":2,"tid":1})"); }),
            "t.json: the event '0F0' has no \"ts\"; give it in microseconds");
}

// An end without a name ends what began last, whether or not it is an op.
TEST(ChromeEvents, UnknownSlicesDoNotEndOps) {
  const traces::ChromeEvents events =
      read(bound("B", "0F0", 5, "") + "," + bound("B", "other", 6, "") + "," +
           bound("E", "", 7, "") + "," + bound("E", "", 9, ""));
  ASSERT_EQ(events.slices.size(), 1u);
  EXPECT_EQ(events.slices[0].end, 9'000);
}

// Not all programs end first what began last.
TEST(ChromeEvents, SlicesMayEndInAnotherOrder) {
  const traces::ChromeEvents events =
      read(bound("B", "0F0", 5, "") + "," + bound("B", "other", 6, "") + "," +
           bound("E", "0F0", 7, "") + "," + bound("E", "other", 9, ""));
  ASSERT_EQ(events.slices.size(), 1u);
  EXPECT_EQ(events.slices[0].end, 7'000);
}

TEST(ChromeEvents, OpsThatNeverEndAreCounted) {
  const traces::ChromeEvents events =
      read(bound("B", "0F0", 5, "") + "," + bound("B", "other", 6, ""));
  EXPECT_EQ(traces::describe_left_out(events), "1 begun and never ended");
}

// Twelve categories are named.
TEST(ChromeEvents, FurtherCategoriesAreCounted) {
  traces::ChromeEvents events;
  for (int category = 0; category < 13; ++category)
    events.left_out["category " + std::to_string(category)] = 1;
  const std::string one = traces::describe_left_out(events);
  EXPECT_TRUE(one.ends_with(" and slices of 1 further category")) << one;
  events.left_out["another"] = 1;
  const std::string two = traces::describe_left_out(events);
  EXPECT_TRUE(two.ends_with(" and slices of 2 further categories")) << two;
}

}  // namespace
}  // namespace bubblescope::tests
