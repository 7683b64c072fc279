// Known errors: the intervals of predicted steps, and where there are none.
#include "sim/model/known_errors.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "sim/ir/error.h"
#include "sim/model/schedule_def.h"
#include "tests/support/command.h"
#include "tests/support/test_paths.h"
#include "tools/command.h"
#include "traces/reports/known_errors_text.h"

namespace bubblescope::tests {
namespace {

using Json = nlohmann::json;

const Gpu& gpu(const char* name) { return Registry<GpuDef>::instance().find(name)->gpu; }

TEST(KnownErrors, AreOfTheNearestClassAndOfUncalibratedPredictionsAlone) {
  ModelOnDevices on;
  on.model = Registry<ModelDef>::instance().find("llama3-405b")->model;
  on.gpu = gpu("h100");
  on.runtime = "nemo";
  on.matrices = MatrixType::kFp8;
  const KnownErrors* errors = find_nearest_errors(on).known;
  ASSERT_NE(errors, nullptr);
  EXPECT_EQ(errors->from(), "hopper/nemo/fp8/dense");
  EXPECT_LT(errors->lowest, 0);
  EXPECT_GT(errors->highest, 0);
  const StepInterval interval = compute_interval(1'000'000'000, *errors);
  EXPECT_LT(interval.low, 1'000'000'000);
  EXPECT_GT(interval.high, 1'000'000'000);
  on.runtime = "deepspeed";  // without runs on Hopper
  EXPECT_EQ(find_nearest_errors(on).known->from(), "hopper/dense");
  on.model = Registry<ModelDef>::instance().find("mixtral-8x7b")->model;
  on.gpu = gpu("a100");
  EXPECT_EQ(find_nearest_errors(on).known->from(), "expert");
}

/// Expects no errors, and that the reason contains these words.
void expect_no_errors(const ModelOnDevices& on, const std::string& why) {
  const NearestErrors errors = find_nearest_errors(on);
  EXPECT_EQ(errors.known, nullptr) << why;
  EXPECT_NE(errors.why_none.find(why), std::string::npos) << errors.why_none;
}

TEST(KnownErrors, NameAScheduleThatNoRunHad) {
  ModelOnDevices on;
  on.model = Registry<ModelDef>::instance().find("llama3-8b")->model;
  on.gpu = gpu("h100");
  EXPECT_EQ(find_nearest_errors(on).unpublished_schedule, "");
  on.unpublished_schedule = "zb-h1";
  EXPECT_EQ(find_nearest_errors(on).unpublished_schedule, "zb-h1");
  on.assumptions.slowdown = 2;  // no errors are known
  EXPECT_EQ(find_nearest_errors(on).unpublished_schedule, "");
}

TEST(KnownErrors, AreNotThoseOfOtherConstantsDevicesOrLengths) {
  ModelOnDevices on;
  on.model = Registry<ModelDef>::instance().find("llama3-8b")->model;
  on.gpu = gpu("h100");
  EXPECT_EQ(find_nearest_errors(on).why_none, "");
  on.parallel.sequence = 131'072;
  EXPECT_NE(find_nearest_errors(on).known, nullptr);
  on.parallel.sequence = 131'073;
  expect_no_errors(on, "more than 131072 tokens");
  on.parallel.sequence = 8192;
  on.gpu = gpu("v100");
  expect_no_errors(on, "no published run on this device");
  on.gpu = gpu("tpu-v4");
  expect_no_errors(on, "no published run on this device");
  on.gpu = gpu("h100");
  on.replaced = {"--assume cast_bytes"};
  expect_no_errors(on, "--assume cast_bytes");
  on.replaced.clear();
  on.assumptions.slowdown = 1.3;
  expect_no_errors(on, "slowdown");
}

// Boards on PCI Express are no modules of their generation: they have their own few runs, and
// borrow from those of all devices.
TEST(KnownErrors, OfBoardsAreNotThoseOfTheirModules) {
  ModelOnDevices on;
  on.model = Registry<ModelDef>::instance().find("llama3-8b")->model;
  on.runtime = "torchtitan";
  const auto errors_on = [&on](const char* device) {
    on.gpu = gpu(device);
    return *find_nearest_errors(on).known;
  };
  const KnownErrors of_module = errors_on("h100");
  for (const char* board : {"h100-pcie", "h100-nvl", "h200-nvl"}) {
    const KnownErrors errors = errors_on(board);
    EXPECT_EQ(errors.from(), "hopper-pcie/torchtitan/bf16/dense") << board;
    EXPECT_LT(errors.lowest, of_module.lowest) << board;
  }
  EXPECT_EQ(errors_on("rtx-4090").from(), "ada/torchtitan/bf16/dense");
  EXPECT_GT(errors_on("rtx-4090").highest, of_module.highest);
  EXPECT_LT(errors_on("rtx-4090").lowest, of_module.lowest);
}

// An assumption that repeats what holds already replaces nothing, and one that says how the job
// runs is not a constant.
TEST(KnownErrors, EndWhereAnAssumptionIsReplaced) {
  const tools::Arguments run{"1f1b", "--pp", "2", "-m", "4", "--model", "llama3-8b", "--tp", "2"};
  const auto report = [&](std::initializer_list<const char*> more) {
    tools::Arguments all = run;
    all.insert(all.end(), more.begin(), more.end());
    return read_report(tools::run_simulate, all);
  };
  EXPECT_TRUE(report({"--assume", "tensor_exposed=1"})["interval"].is_object());
  EXPECT_TRUE(report({"--tensor-exposed", "1"})["interval"].is_object());
  EXPECT_TRUE(report({"--assume", "launch_blocking=1"})["interval"].is_object());
  EXPECT_TRUE(report({"--assume", "iteration_graphs=1"})["interval"].is_object());
  EXPECT_TRUE(report({"--assume", "ranks_per_token=1"})["interval"].is_object());
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
      {"ampere", "a100"},    {"ampere-pcie", "a100-pcie"},
      {"ga10x", "a40"},      {"ada", "l40s"},
      {"hopper", "h100"},    {"hopper-pcie", "h100-pcie"},
      {"blackwell", "b200"}, {"blackwell-rtx", "rtx-5090"},
      {"cdna3", "mi325x"},   {"cdna4", "mi355x"}};
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
    const KnownErrors* errors = find_nearest_errors(model_of_row(row)).known;
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

// Short sequences divided among tensor ranks leave the device little to do between two launches.
TEST(KnownErrors, EndWhereHostsLimitTheStep) {
  const auto report = [](std::initializer_list<const char*> more) {
    tools::Arguments all{"1f1b", "--pp", "1", "-m", "4", "--model", "qwen3-4b", "--tp", "2"};
    all.insert(all.end(), more.begin(), more.end());
    return read_report(tools::run_simulate, all);
  };
  const Json limited = report({"--gpu", "h200", "--runtime", "nemo", "--seq-length", "1024"});
  EXPECT_TRUE(limited["interval"].is_null());
  EXPECT_NE(limited["no_interval"].get<std::string>().find("host_layer_us"), std::string::npos);
  for (const std::initializer_list<const char*>& more :
       {std::initializer_list<const char*>{"--gpu", "h200", "--runtime", "nemo", "--seq-length",
                                           "16384"},
        {"--gpu", "h200", "--runtime", "nemo", "--seq-length", "1024", "--assume",
         "iteration_graphs=1"},
        {"--gpu", "a100", "--runtime", "deepspeed", "--seq-length", "1024"}})
    EXPECT_TRUE(report(more)["interval"].is_object());
}

// NeMo until 24.07 has the errors of NeMo, and so has NeMo where a flag names its kernel.
TEST(KnownErrors, HoldForOlderKernelsOfAttention) {
  const auto report = [](std::initializer_list<const char*> more) {
    tools::Arguments all{"1f1b",      "--pp", "1", "-m",           "4",     "--model",
                         "llama3-8b", "--tp", "2", "--seq-length", "32768", "--runtime"};
    all.insert(all.end(), more.begin(), more.end());
    return read_report(tools::run_simulate, all);
  };
  const Json old = report({"nemo-24.07"});
  EXPECT_TRUE(old["interval"].is_object());
  const Json named = report({"nemo", "--assume", "flash_attention_2=1"});
  EXPECT_EQ(named["makespan_ns"], old["makespan_ns"]);
  EXPECT_TRUE(named["interval"].is_object());
  EXPECT_GT(old["makespan_ns"].get<double>(), 1.1 * report({"nemo"})["makespan_ns"].get<double>());
  EXPECT_TRUE(report({"nemo", "--assume", "flash_attention_4=1"})["interval"].is_object());
  EXPECT_TRUE(report({"nemo", "--assume", "moment_bytes=2"})["interval"].is_object());
}

}  // namespace
}  // namespace bubblescope::tests
