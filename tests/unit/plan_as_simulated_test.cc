// A plan's rows are what `simulate` shows: orders, intervals, devices of several kinds, pairs.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "sim/ir/error.h"
#include "tests/support/command.h"
#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"
#include "tools/command.h"
#include "traces/files/file.h"

namespace bubblescope::tests {
namespace {

using Json = nlohmann::json;

tools::Arguments join(tools::Arguments left, const tools::Arguments& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

/// Expects that every row of a plan on so many devices is the step that `simulate` shows, with its
/// interval. Returns the rows.
Json expect_as_simulated(const tools::Arguments& shared, const tools::Arguments& planned) {
  const Json plans = read_report(tools::run_plan, join(shared, planned))["plans"];
  EXPECT_FALSE(plans.empty());
  for (const Json& plan : plans) {
    const auto number = [&](const char* key) { return std::to_string(plan[key].get<int>()); };
    tools::Arguments rare;
    if (plan.contains("recompute_modules"))
      rare = {"--recompute-modules", join_names(plan["recompute_modules"])};
    if (plan.contains("recompute_method"))
      rare = {"--recompute-method", plan["recompute_method"].get<std::string>(),
              "--recompute-num-layers", number("recompute_num_layers")};
    if (plan.contains("unshard_lookahead"))
      rare = join(rare, {"--fsdp", "--unshard-lookahead", plan["unshard_lookahead"]});
    const tools::Arguments words =
        join(join({plan["schedule"].get<std::string>(), "--pp", number("pp"), "--vpp",
                   number("vpp"), "--tp", number("tp"), "--dp", number("dp"), "--ep", number("ep"),
                   "-m", number("microbatches"), "--micro-batch-size", number("micro_batch_size"),
                   "--recompute", plan["recompute"], "--layout", plan["layout"]},
                  rare),
             shared);
    const Json report = read_report(tools::run_simulate, words);
    EXPECT_EQ(plan["step_ns"], report["makespan_ns"]) << plan;
    EXPECT_EQ(plan["head_room_bytes"], report["head_room_bytes"]) << plan;
    EXPECT_EQ(plan["interval"], report["interval"]) << plan;
    EXPECT_EQ(plan.value("no_interval", ""), report.value("no_interval", "")) << plan;
  }
  return plans;
}

const tools::Arguments kDense{"--model", "llama3-8b"};
const tools::Arguments kExperts{"--model", "mixtral-8x7b", "--parts", "megatron"};

tools::Arguments on_devices(const char* gpus, const char* schedules, const char* ranks) {
  return {"--gpus", gpus, "--global-batch-size", "32", "--schedules", schedules, "--pp", ranks,
          "--tp",   "2",  "--micro-batch-size",  "1",  "--recompute", "none"};
}

TEST(PlansAsSimulated, HaveAnIntervalWhereSimulateHasOne) {
  const Json plans =
      expect_as_simulated(kDense, on_devices("16", "1f1b,1f1b-vocab,pipedream-2bw", "4"));
  for (const Json& plan : plans)
    EXPECT_EQ(plan["interval"].is_object(), plan["schedule"] == "1f1b") << plan;
}

TEST(PlansAsSimulated, SweepHowFarAheadWeightsAreGathered) {
  tools::Arguments sweep = on_devices("16", "1f1b,interleaved,dualpipev", "4");
  const Json plans = expect_as_simulated(join(kDense, {"--zero", "3"}),
                                         join(sweep, {"--unshard-lookahead", "1,auto,full,none"}));
  std::map<std::string, std::set<std::string>> tried;  // of each schedule
  for (const Json& plan : plans)
    tried[plan["schedule"]].insert(plan.value("unshard_lookahead", "none"));
  ASSERT_EQ(tried.size(), 3u);
  // Where a rank has one stage, nothing is ahead, and equal plans are shown once.
  EXPECT_EQ(tried["1f1b"], (std::set<std::string>{"1", "none"}));
  EXPECT_EQ(tried["interleaved"], (std::set<std::string>{"1", "auto", "none"}));
  EXPECT_TRUE(tried["dualpipev"].contains("none"));
}

// Stages of 8 layers: a block of 8 is one of 16.
TEST(PlansAsSimulated, RecomputeSoManyLayersOfEveryStage) {
  const Json plans = expect_as_simulated(kDense, {"--gpus",
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
                                                  "--split",
                                                  "even",
                                                  "--recompute-granularity",
                                                  "full",
                                                  "--recompute-method",
                                                  "block",
                                                  "--recompute-num-layers",
                                                  "0,2,4,8,16"});
  ASSERT_EQ(plans.size(), 4U) << plans;
  EXPECT_EQ(plans[0]["recompute"], "none");
  for (std::size_t at = 1; at < plans.size(); ++at) {
    EXPECT_EQ(plans[at]["recompute_method"], "block");
    EXPECT_EQ(plans[at]["recompute_num_layers"], 1 << at) << plans;
    EXPECT_GT(plans[at]["step_ns"], plans[at - 1]["step_ns"]);
    EXPECT_LT(plans[at]["peak_memory_bytes"], plans[at - 1]["peak_memory_bytes"]);
  }
}

// Gathered weights leave no room for the modules that fit without them.
TEST(PlansAsSimulated, RecomputeWhatGatheredWeightsLeaveNoRoomFor) {
  const Json plans = expect_as_simulated(
      join(kDense, {"--zero", "3", "--gpu", "h100"}),
      {"--gpus", "16", "--global-batch-size", "64", "--tp", "2", "--pp", "4", "--micro-batch-size",
       "4", "--schedules", "zb-v", "--unshard-lookahead", "1"});
  EXPECT_TRUE(std::any_of(plans.begin(), plans.end(), [](const Json& plan) {
    return plan.contains("recompute_modules");
  })) << plans;
}

std::string refusal_of(const tools::Arguments& words) {
  return error_of([&] { tools::run_plan(words); });
}

TEST(PlansAsSimulated, GatherAheadOnlyWhereItMayBe) {
  const auto expect_refusal = [](const tools::Arguments& more, const std::string& why) {
    const std::string refusal = refusal_of(join(join(kDense, on_devices("16", "1f1b", "4")), more));
    EXPECT_NE(refusal.find(why), std::string::npos) << refusal;
  };
  expect_refusal({"--unshard-lookahead", "1"}, "add --zero 3");
  expect_refusal({"--zero", "3", "--unshard-lookahead", "1", "--profile", "megatron"},
                 "--unshard-lookahead is an option of PyTorch's");
  expect_refusal({"--send-budget", "1", "--profile", "deepspeed"},
                 "--send-budget is an option of PyTorch's");
  expect_refusal({"--zero", "3", "--unshard-lookahead", "1,4"}, "not in 1..3");
  expect_refusal({"--zero", "3", "--unshard-lookahead", "1,x"},
                 "'x' is not a number of stages; write full, auto, none or 2");
  expect_refusal({"--zero", "3", "--unshard-lookahead", "1", "--format", "megatron"},
                 "neither send budgets nor lookaheads");
}

class PlansOfCostFiles : public TemporaryFolder {};

// Searched schedules keep within the bytes that the file gives.
TEST_F(PlansOfCostFiles, SearchWithinTheirBytes) {
  const std::string costs = path("costs.json");
  std::string stages;
  for (const char* saved : {"8MiB", "8MiB", "8MiB", "16MiB"})
    stages += std::string(stages.empty() ? "" : ",") +
              R"({"forward":1,"input_grad":1,"weight_grad":1,"activation_bytes":{"saved":")" +
              saved + R"(","released_by_input_grad":"2MiB"}})";
  traces::write_file(costs, R"({"format":"bubblescope-costs/1","stages":[)" + stages + "]}");
  const tools::Arguments shared{"--pp", "4", "-m", "8", "--costs", costs, "--cap", "24MiB"};
  const Json plan = read_report(tools::run_plan, join(shared, {"--schedules", "zb-auto"}))["plans"];
  ASSERT_EQ(plan.size(), 1u);
  EXPECT_EQ(plan[0]["step_ns"],
            read_report(tools::run_simulate, join({"zb-auto"}, shared))["makespan_ns"]);
}

// A job's step ends with its slowest replica and what surrounds the pipeline, so that fewer
// micro-batches are worse than one pipeline alone would show.
TEST_F(PlansOfCostFiles, CountWholeStepsOfJobs) {
  const std::string costs = path("costs.json");
  const auto stages = [](const char* slower) {
    return R"("stages":[{"forward":1,"input_grad":1,"weight_grad":1},{"forward":)" +
           std::string(slower) + R"(,"input_grad":1,"weight_grad":1}])";
  };
  traces::write_file(costs, R"({"format":"bubblescope-costs/1",)" + stages("1.5") +
                                R"(,"outside_pipeline":20,"replicas":[{)" + stages("1") + "},{" +
                                stages("2") + "}]}");
  const tools::Arguments shared{"--pp", "2", "--costs", costs};
  const Json plans = read_report(tools::run_plan,
                                 join(shared, {"-m", "4,8", "--schedules", "1f1b,zb-h1"}))["plans"];
  ASSERT_EQ(plans.size(), 4u);
  EXPECT_EQ(plans[0]["microbatches"], 8);
  for (const Json& plan : plans) {
    const tools::Arguments words{plan["schedule"].get<std::string>(), "-m",
                                 std::to_string(plan["microbatches"].get<int>())};
    const Json report = read_report(tools::run_simulate, join(words, shared));
    EXPECT_EQ(plan["step_ns"], report["step_ns"]) << plan;
    EXPECT_EQ(plan["outside_pipeline_ns"], 20'000'000) << plan;
    EXPECT_EQ(plan["step_ns"].get<int>(), report["makespan_ns"].get<int>() + 20'000'000) << plan;
    EXPECT_EQ(plan["lower_bound_ns"].get<int>(), report["lower_bound_ns"].get<int>() + 20'000'000)
        << plan;
  }
}

std::set<std::string> find_modules_of(const Json& plans) {
  std::set<std::string> names;
  for (const Json& plan : plans)
    names.insert(plan.contains("recompute_modules") ? join_names(plan["recompute_modules"])
                                                    : plan["recompute"].get<std::string>());
  return names;
}

// Some layouts of 70B fit as they are, some with modules; the more is recomputed, the slower.
TEST(PlansAsSimulated, RecomputeTheModulesThatTheyName) {
  const tools::Arguments shared{"--model", "llama3-70b"};
  const Json plans = expect_as_simulated(
      shared, {"--gpus", "64", "--global-batch-size", "128", "--schedules", "1f1b,interleaved",
               "--pp", "4,8", "--tp", "4,8", "--vpp", "2", "--micro-batch-size", "1,2"});
  const std::set<std::string> recomputed = find_modules_of(plans);
  EXPECT_TRUE(recomputed.contains("none"));
  EXPECT_TRUE(recomputed.contains("full"));
  EXPECT_GE(recomputed.size(), 3u) << plans;
}

// Runtimes that are not built on Megatron-Core have no such names.
TEST(PlansAsSimulated, ChooseModulesWhereTheRuntimeNamesThem) {
  const tools::Arguments question{
      "--model", "llama3-70b", "--gpus", "64",  "--global-batch-size", "128", "--schedules", "1f1b",
      "--pp",    "4",          "--tp",   "4,8", "--micro-batch-size",  "4"};
  const auto tried = [&](const tools::Arguments& more) {
    std::set<std::string> names =
        find_modules_of(read_report(tools::run_plan, join(question, more))["plans"]);
    for (const char* name : {"none", "selective", "full"}) names.erase(name);
    return !names.empty();
  };
  EXPECT_TRUE(tried({}));
  EXPECT_FALSE(tried({"--recompute", "none,full"}));
  EXPECT_FALSE(tried({"--runtime", "megatron-2021"}));
  EXPECT_TRUE(tried({"--runtime", "nemo", "--recompute", "modules"}));
  EXPECT_EQ(error_of([&] {
              tools::run_plan(join(question, {"--runtime", "deepspeed", "--recompute", "modules"}));
            }),
            "--recompute modules are those of Megatron-Core, and --runtime deepspeed names none; "
            "give none, selective or full");
}

TEST(PlansAsSimulated, PairTurnsForExperts) {
  const tools::Arguments pairs = join(kExperts, {"--moe-overlap"});
  const tools::Arguments planned = join(on_devices("16", "interleaved", "4"),
                                        {"--vpp", "2", "--ep", "4", "--split", "balanced"});
  const Json with = expect_as_simulated(pairs, planned)[0];
  EXPECT_TRUE(with["interval"].is_null());
  const Json without = read_report(tools::run_plan, join(kExperts, planned))["plans"][0];
  EXPECT_NE(with["step_ns"], without["step_ns"]);
}

// The order is searched for with the costs of the stages where they are, whatever the command.
TEST(PlansAsSimulated, SearchTheSameOrders) {
  for (const char* zero : {"1", "2"})
    expect_as_simulated(join(kDense, {"--zero", zero}),
                        join(on_devices("8", "v-half,zb-auto", "4"), {"--split", "balanced"}));
}

TEST(PlansAsSimulated, KeepTheProportionsOfDevicesOfSeveralKinds) {
  const tools::Arguments mixed = join(kDense, {"--gpu", "h100,a100"});
  const tools::Arguments planned = on_devices("8", "1f1b,zb-v", "1,2,4");
  const Json table = read_report(tools::run_plan, join(mixed, planned));
  ASSERT_FALSE(table["plans"].empty());
  for (const Json& plan : table["plans"]) {
    const int half = plan["pp"].get<int>() / 2;
    ASSERT_GT(half, 0) << plan;
    const std::string gpus = std::to_string(half) + "xh100," + std::to_string(half) + "xa100";
    const Json report = read_report(
        tools::run_simulate, {plan["schedule"].get<std::string>(), "--pp", std::to_string(2 * half),
                              "--tp", "2", "--dp", std::to_string(plan["dp"].get<int>()), "-m",
                              std::to_string(plan["microbatches"].get<int>()), "--model",
                              "llama3-8b", "--gpu", gpus, "--layout", plan["layout"]});
    EXPECT_EQ(plan["step_ns"], report["makespan_ns"]) << plan;
    EXPECT_EQ(plan["head_room_bytes"], report["head_room_bytes"]) << plan;
  }
  const std::string refused = table["refused"].dump();
  EXPECT_NE(refused.find("--pp 1 cannot be divided in their proportions; give multiples of 2"),
            std::string::npos)
      << refused;
}

}  // namespace
}  // namespace bubblescope::tests
