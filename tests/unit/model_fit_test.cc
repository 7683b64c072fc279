// The device memory available to a program, collectives over nodes, experts over tensor ranks,
// known errors.
#include "sim/predict/model_fit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "sim/ir/bytes_text.h"
#include "sim/ir/error.h"
#include "sim/model/known_errors.h"
#include "sim/model/model_step.h"
#include "sim/model/schedule_def.h"
#include "tests/support/command.h"
#include "tests/support/test_paths.h"
#include "tools/command.h"
#include "traces/reports/known_errors_text.h"

namespace bubblescope::tests {
namespace {

using Json = nlohmann::json;

Json simulated(const tools::Arguments& arguments) {
  tools::Arguments all = arguments;
  all.insert(all.end(), {"--format", "json"});
  return Json::parse(call_command(tools::run_simulate, all).output);
}

const Gpu& gpu(const char* name) { return Registry<GpuDef>::instance().find(name)->gpu; }

Bytes peak_of(const Json& report) {
  Bytes peak = 0;
  for (const Json& rank : report["ranks"])
    peak = std::max(peak, rank["peak_memory_bytes"].get<Bytes>());
  return peak;
}

// PyTorch's out-of-memory messages on H100 and A100 of 80 GB state 79.1 to 79.25 GiB in total.
TEST(Devices, LeaveAProgramLessThanTheyAreSoldWith) {
  for (const char* name : {"h100", "a100", "h800"}) {
    EXPECT_GE(gpu(name).memory, Bytes{79} << 30) << name;
    EXPECT_LE(static_cast<double>(gpu(name).memory), 79.25 * (1 << 30)) << name;
  }
}

TEST(ModelFit, HeadRoomIsWhatTheReserveAndTheFullestRankLeave) {
  const tools::Arguments run{"1f1b", "--pp", "8", "-m", "64", "--model", "llama3-70b", "--tp", "8"};
  const Json report = simulated(run);
  EXPECT_EQ(report["fits"], true);
  EXPECT_EQ(report["model"]["gradients"], "fp32");
  EXPECT_EQ(report["head_room_bytes"], gpu("h100").memory - (Bytes{1} << 29) - peak_of(report));
  tools::Arguments reserved = run;
  reserved.insert(reserved.end(), {"--reserve-memory", "4GiB"});
  EXPECT_EQ(simulated(reserved)["head_room_bytes"],
            gpu("h100").memory - (Bytes{4} << 30) - peak_of(report));
  reserved[reserved.size() - 2] = "--reserve-memory";
  EXPECT_EQ(simulated(reserved)["fits"], true);
}

// DGX Cloud benchmarking 24.11.1 ran 340B on 128 H100 with these ranks. With 32-bit gradients it
// would need 94 GiB.
TEST(ModelFit, GradientsAreSmallerWhereOnlyThenAllFits) {
  const tools::Arguments run{"1f1b",    "--pp",        "4",    "-m",    "32",
                             "--model", "llama3-70b",  "--tp", "4",     "--dp",
                             "2",       "--recompute", "full", "--gpu", "h100"};
  tools::Arguments exact = run;
  exact.insert(exact.end(), {"--gradients", "fp32"});
  const Json full = simulated(exact);
  exact.back() = "bf16";
  const Json half = simulated(exact);
  exact.back() = "bf16-lean";
  const Json lean = simulated(exact);
  EXPECT_GT(peak_of(full), peak_of(half));
  EXPECT_GT(peak_of(half), peak_of(lean));
  const Json chosen = simulated(run);
  const Json& expected = full["fits"] ? full : half["fits"] ? half : lean["fits"] ? lean : full;
  EXPECT_EQ(chosen["model"]["gradients"], expected["model"]["gradients"]);
  EXPECT_EQ(peak_of(chosen), peak_of(expected));
}

TEST(ModelFit, PlansHaveHeadRoom) {
  const Json plans = Json::parse(
      call_command(tools::run_plan,
                   {"--model", "llama3-70b", "--gpus", "128", "--global-batch-size", "1024", "--pp",
                    "4,8", "--tp", "8", "--schedules", "1f1b,interleaved", "--format", "json"})
          .output)["plans"];
  ASSERT_FALSE(plans.empty());
  for (const Json& plan : plans) {
    EXPECT_EQ(plan["fits"], true);
    EXPECT_GE(plan["head_room_bytes"], 0) << plan;
    EXPECT_EQ(plan["head_room_bytes"],
              gpu("h100").memory - (Bytes{1} << 29) - plan["peak_memory_bytes"].get<Bytes>());
  }
}

// The 8 devices of a node communicate through 8 NICs of 45 GB/s: 360 GB/s, against 376 GB/s inside.
TEST(GroupLink, UsesTheNicsOfAllMembersInANode) {
  const Gpu& device = gpu("h100");
  EXPECT_EQ(find_group_link(device, 8, 1).bytes_per_second, device.inside.bytes_per_second);
  EXPECT_DOUBLE_EQ(find_group_link(device, 16, 1).bytes_per_second,
                   8 * device.outside.bytes_per_second);
  EXPECT_DOUBLE_EQ(find_group_link(device, 16, 2).bytes_per_second,
                   4 * device.outside.bytes_per_second);
  EXPECT_DOUBLE_EQ(find_group_link(device, 16, 8).bytes_per_second,
                   device.outside.bytes_per_second);
  EXPECT_EQ(find_group_link(device, 16, 1).latency, device.outside.latency);
  // On GB200, 72 devices form one NVLink domain, of whose rate rings reach a part.
  EXPECT_LT(gpu("gb200").kernels.ring_share, 1);
  EXPECT_DOUBLE_EQ(find_group_link(gpu("gb200"), 64, 1).bytes_per_second,
                   gpu("gb200").inside.bytes_per_second * gpu("gb200").kernels.ring_share);
}

ModelOnDevices deepseek() {
  ModelOnDevices on;
  on.model = Registry<ModelDef>::instance().find("deepseek-v3")->model;
  on.gpu = gpu("gb200");
  on.parallel.sequence = 4096;
  return on;
}

Shape shape_of(std::int32_t ranks) {
  Shape shape;
  shape.ranks = ranks;
  shape.microbatches = 4;
  return shape;
}

// Megatron-Bridge runs DeepSeek-V3 on 256 GB200 with tp 2 and pp 4; ep 64 spans dp 32 and both
// tensor ranks.
TEST(Experts, ReachOverTensorRanks) {
  ModelOnDevices on = deepseek();
  on.parallel.tensor = 2;
  on.parallel.data = 32;
  on.parallel.expert = 64;
  EXPECT_EQ(on.parallel.expert_split(), 1);
  EXPECT_NO_THROW(compute_model_step(on, shape_of(4)));
  on.parallel.expert_tensor = 2;
  EXPECT_THROW(compute_model_step(on, shape_of(4)), Error);  // 128 of 64 ranks
  on.parallel.expert_tensor = 1;
  on.parallel.expert = 128;
  EXPECT_THROW(compute_model_step(on, shape_of(4)), Error);
}

// However experts are split, all ranks together hold each of them once per group.
TEST(Experts, WeighTheSameHoweverTheyAreCut) {
  ModelOnDevices on = deepseek();
  on.parallel.tensor = 4;
  on.parallel.data = 16;
  on.parallel.zero_stage = 0;
  on.parallel.expert = 16;
  on.parallel.expert_tensor = 4;
  const Bytes split = compute_model_step(on, shape_of(8)).states[1].weights;
  on.parallel.expert = 64;
  on.parallel.expert_tensor = 1;
  EXPECT_EQ(compute_model_step(on, shape_of(8)).states[1].weights, split);
}

TEST(Experts, ExchangeBesideThePairsOtherHalfWhereOverlapIsFused) {
  const tools::Arguments run{"dualpipe", "--pp", "8",    "-m", "32",   "--model", "deepseek-v3",
                             "--gpu",    "h800", "--ep", "64", "--dp", "64",      "--overlap"};
  const auto step = [&](const char* overlap) {
    tools::Arguments all = run;
    all.emplace_back(overlap);
    return simulated(all)["makespan_ns"].get<Nanos>();
  };
  EXPECT_LT(step("fused"), 0.95 * static_cast<double>(step("atomic")));
}

TEST(KnownErrors, AreOfTheNearestClassAndOfUncalibratedPredictionsAlone) {
  ModelOnDevices on;
  on.model = Registry<ModelDef>::instance().find("llama3-405b")->model;
  on.gpu = gpu("h100");
  on.runtime = "nemo";
  on.matrices = MatrixType::kFp8;
  const KnownErrors* errors = find_nearest_errors(on);
  ASSERT_NE(errors, nullptr);
  EXPECT_EQ(errors->from(), "hopper/nemo/fp8/dense");
  EXPECT_LT(errors->lowest, 0);
  EXPECT_GT(errors->highest, 0);
  const StepInterval interval = compute_interval(1'000'000'000, *errors);
  EXPECT_LT(interval.low, 1'000'000'000);
  EXPECT_GT(interval.high, 1'000'000'000);
  on.runtime = "deepspeed";  // without runs on Hopper
  EXPECT_EQ(find_nearest_errors(on)->from(), "hopper/dense");
  on.model = Registry<ModelDef>::instance().find("mixtral-8x7b")->model;
  on.gpu = gpu("a100");
  EXPECT_EQ(find_nearest_errors(on)->from(), "expert");
}

/// Expects no errors, and that the reason contains these words.
void expect_no_errors(const ModelOnDevices& on, const std::string& why) {
  EXPECT_EQ(find_nearest_errors(on), nullptr) << why;
  EXPECT_NE(why_no_errors(on).find(why), std::string::npos) << why_no_errors(on);
}

TEST(KnownErrors, AreNotThoseOfOtherConstantsDevicesOrLengths) {
  ModelOnDevices on;
  on.model = Registry<ModelDef>::instance().find("llama3-8b")->model;
  on.gpu = gpu("h100");
  EXPECT_EQ(why_no_errors(on), "");
  on.parallel.sequence = 131'072;
  EXPECT_NE(find_nearest_errors(on), nullptr);
  on.parallel.sequence = 131'073;
  expect_no_errors(on, "more than 131072 tokens");
  on.parallel.sequence = 8192;
  on.gpu = gpu("v100");
  expect_no_errors(on, "no published run on this device");
  on.gpu = gpu("mi300x");
  expect_no_errors(on, "no published run on this device");
  on.gpu = gpu("h100");
  on.replaced = {"--assume cast_bytes"};
  expect_no_errors(on, "--assume cast_bytes");
  on.replaced.clear();
  on.assumptions.slowdown = 1.3;
  expect_no_errors(on, "slowdown");
}

// An assumption that repeats what holds already replaces nothing, and one that says how the job
// runs is no constant.
TEST(KnownErrors, EndWhereAnAssumptionIsReplaced) {
  const tools::Arguments run{"1f1b", "--pp", "2", "-m", "4", "--model", "llama3-8b", "--tp", "2"};
  const auto report = [&](std::initializer_list<const char*> more) {
    tools::Arguments all = run;
    all.insert(all.end(), more.begin(), more.end());
    return simulated(all);
  };
  EXPECT_TRUE(report({"--assume", "tensor_exposed=1"})["interval"].is_object());
  EXPECT_TRUE(report({"--tensor-exposed", "1"})["interval"].is_object());
  EXPECT_TRUE(report({"--assume", "launch_blocking=1"})["interval"].is_object());
  EXPECT_TRUE(report({"--assume", "iteration_graphs=1"})["interval"].is_object());
  for (const std::initializer_list<const char*>& more :
       {std::initializer_list<const char*>{"--assume", "tensor_exposed=0.5"},
        {"--tensor-exposed", "0.5"},
        {"--message-exposed", "0.3"},
        {"--accumulation-bytes", "5"},
        {"--assume", "half_size=60"}}) {
    const Json changed = report(more);
    EXPECT_TRUE(changed["interval"].is_null()) << *more.begin();
    EXPECT_NE(changed["no_interval"].get<std::string>().find(*more.begin()), std::string::npos);
  }
}

/// The rows of the document's table, cell by cell: "| hopper | nemo | dense | fp8 | 21 | 3 | ...".
std::vector<std::vector<std::string>> documented_errors() {
  std::ifstream document(source_folder() + "/docs/accuracy_steps.md");
  std::vector<std::vector<std::string>> rows;
  bool inside = false;
  for (std::string line; std::getline(document, line);) {
    inside = line.starts_with("## ") ? line == "## Intervals" : inside;
    std::vector<std::string> cells;
    std::istringstream parts(line);
    for (std::string cell; std::getline(parts, cell, '|');)
      cells.push_back(cell.size() > 2 ? cell.substr(1, cell.size() - 2) : cell);
    if (inside && cells.size() == 11 && cells[5].find_first_of("0123456789") != std::string::npos)
      rows.push_back(cells);
  }
  return rows;
}

/// A model on devices that belongs to a row of the document.
ModelOnDevices model_of_row(const std::vector<std::string>& row) {
  const std::map<std::string, std::string> devices{
      {"ampere", "a100"}, {"hopper", "h100"}, {"blackwell", "b200"}};
  ModelOnDevices on;
  // No expert model was run on A100s, which therefore have the errors of all expert models.
  on.gpu = gpu(devices.at(row[1] == "all" ? "ampere" : row[1]).c_str());
  on.runtime = row[2] == "all" ? "none" : row[2];
  on.model =
      Registry<ModelDef>::instance().find(row[3] == "expert" ? "mixtral-8x7b" : "llama3-8b")->model;
  on.matrices = row[4] == "fp8" ? MatrixType::kFp8 : MatrixType::kBf16;
  return on;
}

TEST(KnownErrors, AreThoseOfTheDocument) {
  const std::vector<std::vector<std::string>> rows = documented_errors();
  ASSERT_GE(rows.size(), 10U);
  for (const std::vector<std::string>& row : rows) {
    if (row[1] == "all" && row[3] == "dense") continue;  // every known generation has dense runs
    const KnownErrors* errors = find_nearest_errors(model_of_row(row));
    ASSERT_NE(errors, nullptr) << row[1];
    // A wider class with the same runs may lie behind a nearer one.
    if (row[4] == "all" && !errors->precision.empty()) continue;
    EXPECT_EQ(errors->runs, std::stoi(row[5])) << errors->from();
    EXPECT_DOUBLE_EQ(100 * errors->lowest, std::stod(row[7])) << errors->from();
    EXPECT_DOUBLE_EQ(100 * errors->middle, std::stod(row[8])) << errors->from();
    EXPECT_DOUBLE_EQ(100 * errors->spread, std::stod(row[9])) << errors->from();
    EXPECT_DOUBLE_EQ(100 * errors->highest, std::stod(row[10])) << errors->from();
  }
}

// Nine in ten predictions were 1 to 20 % too short, so the runs took 1 to 25 % longer.
TEST(KnownErrors, SayWhyThePredictionLiesOutsideOfThem) {
  KnownErrors errors{"hopper", "nemo", false, "bf16", 22, -0.20, -0.05, 0.04, -0.01};
  const std::string runs =
      "nine in ten published runs like it (22 of dense models on hopper devices under nemo in "
      "bf16, "
      "and wider classes) took ";
  EXPECT_EQ(traces::known_errors_text(errors), runs + "longer than predicted, by 1 to 25 %");
  errors.highest = 0.25;
  EXPECT_EQ(traces::known_errors_text(errors),
            runs + "between 20 % less and 25 % more time than predicted");
  errors.lowest = 0.25;
  EXPECT_EQ(traces::known_errors_text(errors), runs + "less time than predicted, by 20 %");
}

TEST(ModelHeadline, SaysFirstWhatToExpect) {
  const std::string text = call_command(tools::run_simulate, {"1f1b", "--pp", "8", "-m", "64",
                                                              "--model", "llama3-70b", "--tp", "8"})
                               .output;
  const std::size_t expected = text.find("expect       ");
  EXPECT_LT(text.find("predicted    "), expected) << text;
  EXPECT_LT(expected, text.find("memory       fits: ")) << text;
  EXPECT_LT(text.find("memory       fits: "), text.find("8 ranks, 64 micro-batches")) << text;
  EXPECT_NE(text.find("MFU"), std::string::npos) << text;
}

// Both tables show the peak of rank 0: "30.8" and "30.8 GiB".
TEST(ModelHeadline, MemoryIsTheSameInAllTables) {
  const std::string text = call_command(tools::run_simulate, {"1f1b", "--pp", "8", "-m", "64",
                                                              "--model", "llama3-70b", "--tp", "8"})
                               .output;
  const Json report =
      simulated({"1f1b", "--pp", "8", "-m", "64", "--model", "llama3-70b", "--tp", "8"});
  for (const Json& rank : report["ranks"]) {
    const Bytes peak = rank["peak_memory_bytes"];
    EXPECT_NE(text.find(" " + format_bytes(peak)), std::string::npos) << peak;
    EXPECT_NE(text.find(" " + gibibytes_text(peak) + "  "), std::string::npos) << peak;
  }
}

TEST(ModelPlansText, MarksPlansThatMayNotFitAndNamesFrameworks) {
  const std::string text =
      call_command(tools::run_plan,
                   {"--model", "llama3-70b", "--gpus", "128", "--global-batch-size", "1024", "--tp",
                    "4", "--pp", "4,8", "--schedules", "1f1b,zb-v"})
          .output;
  EXPECT_NE(text.find("runs in"), std::string::npos) << text;
  EXPECT_NE(text.find("--profile NAME"), std::string::npos) << text;
  EXPECT_NE(text.find("\n! "), std::string::npos) << text;
  EXPECT_NE(text.find("may not fit"), std::string::npos) << text;
}

TEST(KnownErrors, MakeTiesOfPlans) {
  const Json plans = Json::parse(
      call_command(tools::run_plan,
                   {"--model", "llama3-70b", "--gpus", "128", "--global-batch-size", "1024", "--tp",
                    "8", "--schedules", "1f1b,interleaved", "--format", "json"})
          .output)["plans"];
  ASSERT_GT(plans.size(), 3U);
  EXPECT_EQ(plans[0]["tie_group"], 1);
  int group = 1;
  for (const Json& plan : plans) {
    EXPECT_GE(plan["tie_group"], group);
    group = plan["tie_group"];
    EXPECT_EQ(plan["interval"]["from"], "hopper/megatron/bf16/dense");
    EXPECT_LE(plan["interval"]["low_ns"], plan["interval"]["high_ns"]);
  }
  EXPECT_GT(group, 1);
}

}  // namespace
}  // namespace bubblescope::tests
