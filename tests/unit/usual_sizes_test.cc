// Schedules that equal others with one chunk or slice, names that differ in hyphens, and --cap.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "sim/ir/error.h"
#include "tests/support/command.h"
#include "tests/support/error_text.h"
#include "tools/command.h"
#include "tools/inputs/load_schedule.h"
#include "tools/inputs/schedule_notes.h"

namespace bubblescope::tests {
namespace {

using Json = nlohmann::json;

struct Said {
  std::string output;
  std::string messages;
};

Said print_message(int (*command)(const tools::Arguments&), const tools::Arguments& arguments) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  command(arguments);
  std::fflush(stdout);
  Said said;
  said.messages = testing::internal::GetCapturedStderr();
  said.output = testing::internal::GetCapturedStdout();
  return said;
}

tools::PredictOptions four_ranks() {
  tools::PredictOptions options;
  options.shape.ranks = 4;
  options.shape.microbatches = 8;
  return options;
}

ValidSchedule load(const std::string& name, const tools::PredictOptions& flags) {
  return tools::load_valid_schedule(name, tools::PredictInputs(flags));
}

TEST(UsualSizes, AreTwoWhereOneWouldBeAnotherSchedule) {
  for (const char* name : {"interleaved", "interleaved-zb", "bfs", "group-interleaved"})
    EXPECT_EQ(load(name, four_ranks())->shape.chunks, 2) << name;
  for (const char* name : {"seq1f1b", "terapipe"})
    EXPECT_EQ(load(name, four_ranks())->shape.slices, 2) << name;
  tools::PredictOptions one = four_ranks();
  one.shape.chunks = 1;
  EXPECT_EQ(load("interleaved", one)->shape.chunks, 1);
  // A framework's schedule has the framework's own default.
  one = four_ranks();
  one.shape.profile = Profile::kPytorch;
  EXPECT_EQ(load("interleaved", one)->shape.chunks, 1);
  one = four_ranks();
  one.shape.slices = 1;
  EXPECT_EQ(load("terapipe", one)->shape.slices, 1);
}

TEST(UsualSizes, AreNamedWhereNoneAreGiven) {
  const std::string said = print_message(tools::run_simulate, {"interleaved", "--pp", "4", "-m",
                                                               "8", "--format", "json"})
                               .messages;
  EXPECT_NE(said.find("interleaved uses --vpp 2 by default"), std::string::npos) << said;
  const std::string nothing =
      print_message(tools::run_simulate,
                    {"interleaved", "--vpp", "2", "--pp", "4", "-m", "8", "--format", "json"})
          .messages;
  EXPECT_EQ(nothing, "");
}

TEST(LargerBubbles, AreReportedForManyMicrobatches) {
  const auto said = [](const std::string& schedule, const std::string& microbatches) {
    return print_message(tools::run_simulate,
                         {schedule, "--pp", "4", "-m", microbatches, "--format", "json"})
        .messages;
  };
  for (const char* schedule : {"chimera", "hanayo"}) {
    EXPECT_EQ(said(schedule, "4"), "");
    EXPECT_EQ(said(schedule, "8"), "");
    for (const char* microbatches : {"6", "12"})
      EXPECT_NE(said(schedule, microbatches).find("with up to 4 micro-batches, and with 8 where"),
                std::string::npos);
  }
  EXPECT_EQ(said("1f1b", "64"), "");
}

TEST(UsualSizes, ArePlannedAndNoSmallerOnes) {
  const auto chunks_of = [](const tools::Arguments& more) {
    tools::Arguments arguments{"--pp", "4", "-m", "8", "--schedules", "interleaved,bfs,1f1b"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    std::set<std::pair<std::string, int>> chunks;
    const Json plans = read_report(tools::run_plan, arguments)["plans"];
    for (const Json& entry : plans) chunks.emplace(entry["schedule"], entry["vpp"]);
    return chunks;
  };
  using Pairs = std::set<std::pair<std::string, int>>;
  EXPECT_EQ(chunks_of({}), (Pairs{{"1f1b", 1}, {"bfs", 2}, {"interleaved", 2}}));
  EXPECT_EQ(chunks_of({"--vpp", "1,2,4"}),
            (Pairs{{"1f1b", 1}, {"bfs", 2}, {"bfs", 4}, {"interleaved", 2}, {"interleaved", 4}}));
  EXPECT_EQ(chunks_of({"--vpp", "1"}), (Pairs{{"1f1b", 1}}));
}

// 70B has 80 layers: 10 on each of 8 ranks, which 1, 2, 5 and 10 divide.
TEST(UsualSizes, OfAModelDivideTheLayersOfARank) {
  const Json plans =
      read_report(tools::run_plan, {"--model", "llama3-70b", "--gpus", "128", "--global-batch-size",
                                    "128", "--pp", "8", "--tp", "8", "--micro-batch-size", "1",
                                    "--recompute", "none", "--schedules", "interleaved"})["plans"];
  std::set<int> chunks;
  for (const Json& entry : plans) chunks.insert(entry["vpp"].get<int>());
  EXPECT_TRUE(chunks.contains(5));
  EXPECT_TRUE(chunks.contains(10));
  EXPECT_FALSE(chunks.contains(1));
}

TEST(PlansOnOneRank, AreListedOnce) {
  const Json plans =
      read_report(tools::run_plan, {"--pp", "1", "-m", "8", "--schedules", "all"})["plans"];
  std::set<std::pair<double, double>> figures;
  for (const Json& entry : plans)
    EXPECT_TRUE(figures.emplace(entry["step_ns"], entry["peak_units"]).second) << entry;
  EXPECT_GE(plans.size(), 2U);  // GPipe holds all micro-batches
}

TEST(SimilarNames, AreReportedWhereAnAliasIsOneHyphenFromAnotherSchedule) {
  EXPECT_EQ(tools::find_similar_names("ZB1P"), std::vector<std::string>({"zb-1p"}));
  EXPECT_EQ(tools::find_similar_names("zb-1p"), std::vector<std::string>({"interleaved-zb"}));
  EXPECT_EQ(tools::find_similar_names("1f1b"), std::vector<std::string>());
  const std::string said = print_message(tools::run_simulate, {"zb1p", "--vpp", "2", "--pp", "4",
                                                               "-m", "8", "--format", "json"})
                               .messages;
  EXPECT_NE(said.find("zb1p is interleaved-zb; zb-1p is another schedule"), std::string::npos)
      << said;
}

// No other pair of names may be this similar.
TEST(SimilarNames, AreNoneButZb1p) {
  for (const ScheduleDef& def : Registry<ScheduleDef>::instance().all()) {
    std::vector<std::string> names = def.aliases;
    names.push_back(def.name);
    for (const std::string& name : names) {
      const bool known = normalize_name(name) == "zb1p" || name == "zb-1p";
      EXPECT_EQ(tools::find_similar_names(name).size(), known ? 1U : 0U) << name;
    }
  }
}

const tools::Arguments kModel{"1f1b",      "--pp", "4", "-m",   "8", "--model",
                              "llama3-8b", "--tp", "2", "--dp", "2"};

tools::Arguments with(tools::Arguments arguments, const tools::Arguments& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

// The layers are given, because others would be chosen that keep within the smaller cap.
TEST(Caps, InBytesAreBytes) {
  const tools::Arguments run = with(kModel, {"--layout", "Et*8|t*9|t*9|t*6L"});
  const Json report = read_report(tools::run_simulate, run);
  Bytes peak = 0;
  for (const Json& rank : report["ranks"])
    peak = std::max(peak, rank["peak_memory_bytes"].get<Bytes>());
  const auto status = [&](const std::string& cap) {
    return call_command(tools::run_simulate, with(run, {"--cap", cap})).status;
  };
  EXPECT_EQ(status(std::to_string(peak) + "B"), 0);
  EXPECT_EQ(status(std::to_string(peak - 1) + "B"), 1);
}

TEST(Caps, InUnitsAreReportedAsSuchBesideAModel) {
  const std::string said =
      print_message(tools::run_simulate, with(kModel, {"--cap", "70"})).messages;
  EXPECT_NE(said.find("--cap 70 is 70 micro-batches of activations, not bytes; --cap 70GiB"),
            std::string::npos)
      << said;
}

TEST(Caps, InBytesNeedBytes) {
  const char* const no_bytes = "`cap` is in bytes, but no activation has any here; give `model`, ";
  const tools::Arguments cap{"--pp", "4", "-m", "8", "--cap", "70GiB"};
  EXPECT_TRUE(fails_with([&] { tools::run_simulate(with({"1f1b"}, cap)); }, no_bytes));
  EXPECT_TRUE(fails_with([&] { tools::run_plan(cap); }, no_bytes));
  const tools::Arguments mixed{"1f1b", "--pp", "4", "-m", "8", "--cap", "3,1GiB"};
  EXPECT_EQ(error_of([&] { tools::run_simulate(mixed); }),
            "--cap: '3,1GiB' mixes bytes and units of --mem; write all in one of both");
}

TEST(Caps, InBytesLeavePlansOut) {
  const tools::Arguments question{
      "--model", "llama3-8b", "--gpus", "16",    "--global-batch-size", "32",        "--pp", "4",
      "--tp",    "2",         "--cap",  "20GiB", "--schedules",         "1f1b,gpipe"};
  const Json plans = read_report(tools::run_plan, question)["plans"];
  ASSERT_FALSE(plans.empty());
  for (const Json& entry : plans) EXPECT_LE(entry["peak_memory_bytes"], Bytes{20} << 30);
}

// An order that is searched under a cap in bytes respects it.
TEST(Caps, InBytesBindSearchedOrders) {
  tools::Arguments arguments = with(kModel, {"--format", "json", "--cap", "24GiB"});
  arguments[0] = "zb-auto";
  EXPECT_EQ(call_command(tools::run_simulate, arguments).status, 0);
}

}  // namespace
}  // namespace bubblescope::tests
