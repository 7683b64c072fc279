// `plan` for a model: all devices, the whole batch, layers that fit.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "sim/ir/error.h"
#include "sim/ir/units.h"
#include "tests/support/command.h"
#include "tests/support/error_text.h"
#include "tools/command.h"
#include "tools/plan/plan_options.h"

namespace bubblescope::tests {
namespace {

using Json = nlohmann::json;

CommandOutcome plan(const tools::Arguments& arguments) {
  return call_command(tools::run_plan, arguments);
}

TEST(ModelPlans, UseAllDevicesAndTheWholeBatch) {
  const CommandOutcome printed =
      plan({"--model", "llama3-8b", "--gpu", "h100", "--gpus", "16", "--global-batch-size", "32",
            "--schedules", "1f1b,interleaved", "--micro-batch-size", "1,2", "--format", "json"});
  ASSERT_EQ(printed.status, 0);
  const Json plans = Json::parse(printed.output)["plans"];
  ASSERT_GT(plans.size(), 10U);
  for (const Json& entry : plans) {
    const int ranks = entry["pp"].get<int>() * entry["tp"].get<int>() * entry["dp"].get<int>();
    EXPECT_EQ(ranks, 16) << entry;
    EXPECT_EQ(entry["microbatches"].get<int>() * entry["micro_batch_size"].get<int>() *
                  entry["dp"].get<int>(),
              32)
        << entry;
    EXPECT_LE(entry["peak_memory_bytes"], Bytes{79} << 30) << entry;
    // 32 samples of 8,192 tokens.
    EXPECT_NEAR(entry["tokens_per_second"].get<double>(),
                32 * 8192e9 / entry["step_ns"].get<double>(), 1)
        << entry;
    // The device never does more than it can: 794.5 of 989 TFLOP/s are reachable.
    EXPECT_GT(entry["mfu"], 0.01) << entry;
    EXPECT_LT(entry["mfu"], 794.5 / 989) << entry;
  }
  EXPECT_LE(plans[0]["step_ns"], plans[1]["step_ns"]);
}

TEST(ModelPlans, TimeTheStepAsSimulateDoes) {
  const CommandOutcome printed =
      plan({"--model", "llama3-8b", "--gpus", "16", "--global-batch-size", "32", "--pp", "4",
            "--tp", "2", "--micro-batch-size", "1", "--schedules", "zb-h1", "--recompute", "full",
            "--format", "json"});
  const Json entry = Json::parse(printed.output)["plans"][0];
  testing::internal::CaptureStdout();
  tools::run_simulate({"zb-h1", "--pp", "4", "-m", "16", "--model", "llama3-8b", "--tp", "2",
                       "--dp", "2", "--recompute", "full", "--format", "json"});
  std::fflush(stdout);
  const Json report = Json::parse(testing::internal::GetCapturedStdout());
  EXPECT_EQ(entry["bubble_ratio"], report["bubble"]["ratio"]);
  EXPECT_EQ(entry["step_ns"], report["makespan_ns"]);
  Bytes peak = 0;
  for (const Json& rank : report["ranks"])
    peak = std::max(peak, rank["peak_memory_bytes"].get<Bytes>());
  EXPECT_EQ(entry["peak_memory_bytes"], peak);
}

// On 8 A100 of 40 GB with 1F1B and 8 stages, nothing fits unless the first stages have fewer
// layers.
TEST(ModelPlans, EverySplitIsTheStepThatSimulateShows) {
  const CommandOutcome printed =
      plan({"--model", "llama3-8b", "--gpu", "a100-40", "--gpus", "8", "--global-batch-size", "16",
            "--tp", "1", "--micro-batch-size", "1", "--schedules", "1f1b,interleaved", "--format",
            "json"});
  const Json plans = Json::parse(printed.output)["plans"];
  std::set<std::string> splits;
  for (const Json& entry : plans) {
    splits.insert(entry["split"].get<std::string>());
    tools::Arguments words{entry["schedule"],
                           "--pp",
                           entry["pp"].dump(),
                           "-m",
                           entry["microbatches"].dump(),
                           "--vpp",
                           entry["vpp"].dump(),
                           "--dp",
                           entry["dp"].dump(),
                           "--recompute",
                           entry["recompute"],
                           "--model",
                           "llama3-8b",
                           "--gpu",
                           "a100-40",
                           "--layout",
                           entry["layout"],
                           "--format",
                           "json"};
    if (entry.contains("recompute_modules")) {
      words.emplace_back("--recompute-modules");
      words.push_back(join_names(entry["recompute_modules"]));
    }
    testing::internal::CaptureStdout();
    tools::run_simulate(words);
    std::fflush(stdout);
    const Json report = Json::parse(testing::internal::GetCapturedStdout());
    EXPECT_EQ(entry["step_ns"], report["makespan_ns"]) << entry;
    Bytes peak = 0;
    for (const Json& rank : report["ranks"])
      peak = std::max(peak, rank["peak_memory_bytes"].get<Bytes>());
    EXPECT_EQ(entry["peak_memory_bytes"], peak) << entry;
  }
  EXPECT_TRUE(splits.contains("fitted"));
  EXPECT_TRUE(splits.contains("balanced") || splits.contains("even"));
}

// Megatron-LM separates the names of modules by blanks, csv columns by commas. Without
// recomputation the fullest rank takes more than 70 GiB.
TEST(ModelPlans, NameTheModulesThatTheyRecompute) {
  const auto planned_as = [](const char* format) {
    return plan({"--model",
                 "llama3-70b",
                 "--gpus",
                 "64",
                 "--global-batch-size",
                 "128",
                 "--tp",
                 "4",
                 "--pp",
                 "4",
                 "--vpp",
                 "4",
                 "--micro-batch-size",
                 "1",
                 "--schedules",
                 "interleaved",
                 "--recompute",
                 "modules",
                 "--cap",
                 "70GiB",
                 "--format",
                 format})
        .output;
  };
  const Json best = Json::parse(planned_as("json"))["plans"][0];
  const std::string modules = join_names(best["recompute_modules"]);
  EXPECT_EQ(best["recompute"], "selective");
  EXPECT_LE(best["peak_memory_bytes"], Bytes{70} << 30);
  EXPECT_NE(planned_as("csv").find(",\"" + modules + "\","), std::string::npos);
  EXPECT_NE(planned_as("text").find(" " + modules + " "), std::string::npos);
  std::string words = modules;
  std::replace(words.begin(), words.end(), ',', ' ');
  EXPECT_NE(planned_as("megatron")
                .find("--recompute-granularity selective --recompute-modules " + words + " --"),
            std::string::npos);
}

TEST(ModelPlans, NameTheLayersThatTheyRecompute) {
  const auto planned_as = [](const char* format, const char* recompute) {
    return plan({"--model",
                 "llama3-8b",
                 "--gpus",
                 "8",
                 "--global-batch-size",
                 "16",
                 "--tp",
                 "2",
                 "--pp",
                 "4",
                 "--micro-batch-size",
                 "1",
                 "--schedules",
                 "1f1b",
                 "--recompute",
                 recompute,
                 "--recompute-method",
                 "block",
                 "--recompute-num-layers",
                 "2",
                 "--format",
                 format})
        .output;
  };
  const std::string csv = planned_as("csv", "none,full");
  EXPECT_NE(csv.find(",recompute_method,recompute_num_layers,"), std::string::npos) << csv;
  EXPECT_NE(csv.find(",block,2,"), std::string::npos) << csv;
  EXPECT_NE(planned_as("text", "none,full").find(" full block 2 "), std::string::npos);
  const std::string arguments = planned_as("megatron", "full");
  EXPECT_NE(arguments.find(" --recompute-granularity full --recompute-method block "
                           "--recompute-num-layers 2 "),
            std::string::npos)
      << arguments;
}

// Without recomputation 8 stages fit only if the first ones have fewer layers, which is slower.
TEST(ModelPlans, RecomputeModulesWhereTheBalancedSplitDoesNotFit) {
  const CommandOutcome printed =
      plan({"--model", "llama3-8b", "--gpu", "a100-40", "--gpus", "8", "--global-batch-size", "16",
            "--tp", "1", "--pp", "8", "--micro-batch-size", "1", "--schedules", "1f1b", "--format",
            "json"});
  const Json plans = Json::parse(printed.output)["plans"];
  ASSERT_EQ(plans.size(), 3U);
  EXPECT_EQ(plans[0]["recompute_modules"], Json({"layernorm", "mlp"}));
  EXPECT_EQ(plans[0]["split"], "balanced");
  EXPECT_EQ(plans[1]["recompute"], "full");
  EXPECT_EQ(plans[2]["recompute"], "none");
  EXPECT_EQ(plans[2]["split"], "fitted");
}

TEST(ModelPlans, TryTheSplitsThatAreAskedFor) {
  const tools::Arguments question{
      "--model",     "llama3-8b", "--gpus",   "8",    "--global-batch-size",
      "16",          "--tp",      "1",        "--pp", "4",
      "--schedules", "1f1b",      "--format", "json", "--split"};
  const auto plans_of = [&](const std::string& splits) {
    tools::Arguments asked = question;
    asked.push_back(splits);
    return Json::parse(plan(asked).output)["plans"];
  };
  const Json plans = plans_of("even");
  ASSERT_FALSE(plans.empty());
  for (const Json& entry : plans) EXPECT_EQ(entry["layout"], "Et*8|(t*8|)*2t*8L");
  tools::Arguments odd = question;
  odd.push_back("odd");
  EXPECT_EQ(error_of([&] { tools::run_plan(odd); }),
            "--split: 'odd' is not one of balanced|even|ends|fitted");
}

TEST(ModelPlans, TryEveryValueOfAListOnce) {
  const std::optional<tools::PlanOptions> options = tools::parse_plan_options(
      {"--model", "llama3-8b", "--gpus", "8", "--global-batch-size", "16", "--recompute",
       "full,none,full", "--send-budget", "2,2,none", "--split", "even,even"});
  ASSERT_TRUE(options);
  const tools::ModelAxes& axes = options->model_axes;
  EXPECT_EQ(axes.recomputes.size(), 2u);
  EXPECT_EQ(axes.send_budgets.size(), 2u);
  EXPECT_EQ(axes.splits, std::vector{LayerSplit::kEven});
}

TEST(ModelPlans, AnImpossibleSplitIsReported) {
  const CommandOutcome printed =
      plan({"--model", "llama3-405b", "--gpus", "512", "--global-batch-size", "64", "--tp", "8",
            "--pp", "16", "--schedules", "1f1b", "--split", "even"});
  EXPECT_NE(printed.output.find("126 layers cannot be assigned to 16 stages by --split even"),
            std::string::npos)
      << printed.output;
}

TEST(ModelPlans, SayWhatDoesNotFit) {
  const CommandOutcome printed = plan(
      {"--model", "llama3-405b", "--gpus", "8", "--global-batch-size", "8", "--schedules", "1f1b"});
  EXPECT_EQ(printed.status, 1);
  EXPECT_NE(printed.output.find("states and one micro-batch take"), std::string::npos)
      << printed.output;
}

// States of 14 bytes for each of 405 billion parameters are 660 GiB on each of 8 devices, of which
// 78.6 GiB hold states and 2 GiB of libraries: 8.5 times as much, and so 69 devices or more.
TEST(ModelPlans, SayHowManyDevicesHoldTheModel) {
  const std::string step =
      "plan --model llama3-405b --global-batch-size 8 --schedules 1f1b --gpus ";
  const std::string note = "% more memory than its devices have; give about 72 or more of --gpus";
  EXPECT_NE(run_with_messages(step + "8").output.find(note), std::string::npos);
  EXPECT_EQ(
      run_with_messages("plan --model llama3-8b --global-batch-size 8 --schedules 1f1b --gpus 8")
          .output.find("more memory"),
      std::string::npos);
}

TEST(ModelPlans, NameTheConfigurationThatLacksLeast) {
  // Without shards every data rank holds all states of its stages, so fewer data ranks hold less.
  const CommandOutcome printed =
      plan({"--model", "llama3-405b", "--gpus", "64", "--global-batch-size", "64", "--schedules",
            "1f1b", "--zero", "0", "--format", "json"});
  EXPECT_EQ(printed.status, 1);
  const Json closest = Json::parse(printed.output)["refused"][0]["closest"];
  EXPECT_EQ(closest["dp"], 1);
  EXPECT_EQ(closest["pp"].get<int>() * closest["tp"].get<int>(), 64);
}

Bytes highest_peak(const std::string& reserved_memory) {
  const CommandOutcome printed =
      plan({"--model", "llama3-8b", "--gpus", "8", "--pp", "4", "--schedules", "1f1b",
            "--global-batch-size", "32", "--reserve-memory", reserved_memory, "--format", "json"});
  Bytes highest = 0;
  const Json plans = Json::parse(printed.output)["plans"];
  for (const Json& entry : plans)
    highest = std::max(highest, entry["peak_memory_bytes"].get<Bytes>());
  return highest;
}

/// Returns the error for arguments from which no plan can be made.
std::string refusal_of(const tools::Arguments& arguments) {
  try {
    tools::run_plan(arguments);
  } catch (const Error& error) {
    return error.what();
  }
  return "planned";
}

TEST(ModelPlans, SayWhyNothingDivides) {
  EXPECT_EQ(refusal_of({"--model", "llama3-8b", "--gpus", "64", "--tp", "3", "--pp", "2,4",
                        "--global-batch-size", "512"}),
            "no --tp x --cp x --pp of 3 x 1 x 2,4 divides 64 devices; change one");
  EXPECT_EQ(
      refusal_of(
          {"--model", "llama3-8b", "--gpus", "14", "--pp", "2", "--global-batch-size", "512"}),
      "the batch of 512 samples cannot be divided among --dp 7 in micro-batches of 1,2,4; change "
      "--global-batch-size, --gpus or --pp");
}

TEST(ModelPlans, UseDevicesThatAreNoPowerOfTwo) {
  const CommandOutcome printed =
      plan({"--model", "llama3-8b", "--gpus", "12", "--global-batch-size", "32", "--schedules",
            "1f1b", "--format", "json"});
  const Json plans = Json::parse(printed.output)["plans"];
  std::set<int> ranks;
  for (const Json& entry : plans) ranks.insert(entry["pp"].get<int>());
  // Divisors of 12 that leave --dp a power of two, as 32 samples need: one third of the devices
  // must be in the pipeline, since --tp is a power of two.
  EXPECT_EQ(ranks, (std::set<int>{3, 6, 12}));
}

TEST(ModelPlans, KeepMemoryFree) {
  // An H100 has 80 GiB; reserving a quarter of it leaves 60.
  EXPECT_GT(highest_peak("0"), Bytes{60} << 30);
  EXPECT_LE(highest_peak("25%"), Bytes{60} << 30);
  EXPECT_GT(highest_peak("25%"), 0);
  EXPECT_EQ(highest_peak("25%"), highest_peak("20GiB"));
  EXPECT_EQ(error_of([&] {
              tools::run_plan({"--model", "llama3-8b", "--gpus", "8", "--global-batch-size", "8",
                               "--reserve-memory", "100%"});
            }),
            "--reserve-memory: 100% leaves nothing of the device's 79.1 GiB; give less");
}

}  // namespace
}  // namespace bubblescope::tests
