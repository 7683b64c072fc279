// The search command as scripts see it: it keeps its promises.
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/command.h"

namespace bubblescope::tests {
namespace {

CommandOutcome run(const std::string& arguments) { return run_command(arguments + " 2>/dev/null"); }

// With gradients in 32 bits this model does not fit, and smaller ones have other costs.
TEST(SearchCommand, CountsAModelWithTheGradientsThatFit) {
  const nlohmann::json found = read_report(
      "search --pp 2 -m 1 --model deepseek-v2-lite --tp 2 --micro-batch-size 4 --effort 100");
  EXPECT_EQ(found["makespan_ns"], found["value_ns"]);
}

// Room for one micro-batch: each takes its round trip of p (F + I) and rank 0's W, 4 * 2 + 1 = 9
// ms, before the next may start.
TEST(SearchCommand, SaysWhatItProved) {
  const nlohmann::json found = read_report("search --pp 4 -m 8 --cap 1");
  EXPECT_EQ(found["makespan_ns"], 72'000'000);
  EXPECT_EQ(found["bound_ns"], 72'000'000);
  EXPECT_EQ(found["proved_optimal"], true);
  EXPECT_EQ(found["gap"], 0.0);
}

// The report's own lower bound, 27 ms, ignores the cap; the claim's respects it.
TEST(SearchCommand, NamesWhichBoundKnowsTheCap) {
  const nlohmann::json found = read_report("search --pp 4 -m 8 --cap 1");
  EXPECT_LT(found["lower_bound_ns"], found["bound_ns"]);
  EXPECT_EQ(found["claim"],
            "proved optimal: no order with one stage per rank within the cap is better");
  EXPECT_EQ(read_report("search --pp 2 -m 3")["claim"],
            "proved optimal: no order with one stage per rank without a memory cap is better");
  const std::string text = run("search --pp 4 -m 8 --cap 1").output;
  EXPECT_NE(text.find("(the lower bound below ignores the cap)"), std::string::npos) << text;
}

// Like "above it" of the report's lower bound, the gap is a fraction of the bound.
TEST(SearchCommand, CountsTheGapAsTheReportDoes) {
  const nlohmann::json found =
      read_report("search --pp 8 -m 32 --f 3 --i 5 --w 2 --cap 5 --effort 2000");
  ASSERT_EQ(found["proved_optimal"], false);
  const auto bound = found["bound_ns"].get<double>();
  EXPECT_DOUBLE_EQ(found["gap"], (found["value_ns"].get<double>() - bound) / bound);
  const std::string claim = found["claim"];
  EXPECT_NE(claim.find("within the limit of 2000 timed ops"), std::string::npos) << claim;
}

// A bare number is milliseconds.
TEST(SearchCommand, EchoesTheTimeThatEndedIt) {
  const std::string claim =
      read_report("search --pp 8 -m 32 --f 3 --i 5 --w 2 --cap 5 --time-limit 5")["claim"];
  EXPECT_NE(claim.find(", within the limit of 5 ms"), std::string::npos) << claim;
}

// 70 billion parameters on eight stages leave each H100 memory for only some of the activations.
TEST(SearchCommand, KeepsAModelWithinItsDevices) {
  const nlohmann::json found = read_report(
      "search --model llama3-70b --gpu h100 --pp 8 --tp 4 --placement v -m 12 --time-limit 1s");
  for (const nlohmann::json& rank : found["ranks"])
    EXPECT_LE(rank["peak_memory_bytes"], std::int64_t{80} << 30);
}

/// A cost file whose first rank holds 40 GiB all the time and 5 GiB per micro-batch, and whose
/// second holds 10 GiB and 10 GiB.
std::string write_unequal_memory() {
  const std::filesystem::path path =
      std::filesystem::path(testing::TempDir()) / "unequal_memory.json";
  std::ofstream(path) << R"({"format": "bubblescope-costs/1",
    "memory": {"static_bytes": ["40GiB", "10GiB"]},
    "stages": [{"forward": 1, "input_grad": 1, "weight_grad": 1,
                "activation_bytes": {"saved": "5GiB"}},
               {"forward": 1, "input_grad": 1, "weight_grad": 1,
                "activation_bytes": {"saved": "10GiB"}}]})";
  return path.string();
}

// 50 GiB are two micro-batches on the first rank, as `--cap 2` is, and four on the second. With 49
// GiB the first has room for one, so its round trips of F, F, I and I follow each other.
TEST(SearchCommand, CapsInBytesAreEachRanksOwn) {
  const std::string flags = "search --pp 2 -m 4 --effort 300000 --costs " + write_unequal_memory();
  const nlohmann::json found = read_report(flags + " --cap 50GiB");
  EXPECT_EQ(found["value_ns"], read_report(flags + " --cap 2")["value_ns"]);
  EXPECT_EQ(found["value_ns"], 13'000'000);
  EXPECT_EQ(found["claim"],
            "proved optimal: no order with one stage per rank within the cap is better");
  EXPECT_EQ(read_report(flags + " --cap 49GiB")["value_ns"],
            read_report(flags + " --cap 1,3")["value_ns"]);
  EXPECT_EQ(read_report(flags + " --cap 50GiB,30GiB")["value_ns"],
            read_report(flags + " --cap 2,2")["value_ns"]);
  const CommandOutcome refused = run_command(flags + " --cap 44GiB 2>&1");
  EXPECT_EQ(refused.status, 1);
  EXPECT_NE(
      refused.output.find("rank 0 has 4.00 GiB left for activations, but one micro-batch alone "
                          "needs 5.00 GiB; raise --cap"),
      std::string::npos)
      << refused.output;
}

// A step that fits into less memory fits into more. Ranks hold 17.8 GiB each of weights and states,
// and the first and the last one also an embedding.
TEST(SearchCommand, MoreBytesNeverMakeALongerStep) {
  const std::string flags = "search --pp 4 -m 8 --model llama3-8b --effort 300000 --cap ";
  std::int64_t shortest = 0;
  for (const char* const cap : {"78GiB", "74GiB", "70GiB", "60GiB", "50GiB"}) {
    const nlohmann::json found = read_report(flags + cap);
    const std::int64_t value = found["value_ns"];
    EXPECT_GE(value, shortest) << cap;
    shortest = value;
  }
}

TEST(SearchCommand, RefusesWhatItDoesNotCount) {
  for (const char* flags : {"--optimizer barrier", "--grad-reduction overlap",
                            "--inject rank=1,delay=3ms", "--network bytes=1MiB,link=100"})
    EXPECT_EQ(run(std::string("search --pp 2 -m 3 ") + flags).status, 2) << flags;
}

// Calibration writes an op gap. The search rests between ops as the simulator does, and joins
// backwards where that spares a gap.
TEST(SearchCommand, RestsBetweenOps) {
  const std::filesystem::path file = std::filesystem::temp_directory_path() /
                                     ("bubblescope-gap-" + std::to_string(getpid()) + ".json");
  const std::string stage =
      R"({"forward": "2ms", "backward": "5ms", "input_grad": "3ms", "weight_grad": "2ms"})";
  for (const char* message : {"0", "1ms", "4ms"}) {
    std::ofstream(file)
        << R"({"format": "bubblescope-costs/1", "op_gap": "2ms", "message": {"latency": ")"
        << message << R"("}, "stages": [)" << stage << ", " << stage << "]}";
    const nlohmann::json found =
        read_report("search --pp 2 -m 4 --costs " + file.string() + " --objective makespan");
    EXPECT_EQ(found["proved_optimal"], true) << message;
    EXPECT_LE(found["lower_bound_ns"], found["makespan_ns"]);
    for (const char* name : {"1f1b", "zb-h1", "zb-auto", "gpipe"})
      EXPECT_LE(found["makespan_ns"],
                read_report(std::string("simulate ") + name + " --pp 2 -m 4 --costs " +
                            file.string())["makespan_ns"])
          << name << ' ' << message;
  }
  std::filesystem::remove(file);
}

// Both files that it writes are schedules for other commands, with the makespan that was found.
TEST(SearchCommand, OtherCommandsReadWhatItSaves) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("bubblescope-search-" + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  const std::string costs = " --f 10 --i 12 --w 8 --p2p 2 ";
  const std::string schedule = (folder / "found.json").string();
  const std::string timeline = (folder / "step.json").string();
  const nlohmann::json found = read_report("search --placement v --pp 2 -m 4" + costs + "-o " +
                                           schedule + " --save " + timeline);
  for (const std::string& file : {schedule, timeline}) {
    EXPECT_EQ(read_report("simulate " + file + costs)["makespan_ns"], found["makespan_ns"]);
    EXPECT_EQ(run("check " + file).status, 0);
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace bubblescope::tests
