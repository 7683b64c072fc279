// One plan by several processes or in several runs gives the bytes of a single run.
#include "tools/plan/plan_shards.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "sim/ir/digest.h"
#include "sim/ir/error.h"
#include "tests/support/sanitized.h"
#include "tools/command.h"
#include "traces/files/file.h"

namespace bubblescope::tests {
namespace {

namespace fs = std::filesystem;

const tools::Arguments kQuestion{"--pp", "2..4",  "--vpp", "1,2",   "-m",
                                 "4..7", "--p2p", "0.3",   "--cap", "6"};
const tools::Arguments kModel{
    "--model",     "llama3-8b",  "--gpus", "16",  "--global-batch-size", "32",
    "--schedules", "1f1b,zb-h1", "--tp",   "1,2", "--micro-batch-size",  "1"};

std::string plan(tools::Arguments arguments, const tools::Arguments& more = {}) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  try {
    tools::run_plan(arguments);
  } catch (...) {
    std::fflush(stdout);
    testing::internal::GetCapturedStdout();
    testing::internal::GetCapturedStderr();
    throw;
  }
  std::fflush(stdout);
  testing::internal::GetCapturedStderr();
  return testing::internal::GetCapturedStdout();
}

/// Sets variables during its lifetime.
class Environment {
 public:
  explicit Environment(std::vector<std::pair<const char*, std::string>> variables)
      : variables_(std::move(variables)) {
    for (const auto& [name, value] : variables_) setenv(name, value.c_str(), 1);
  }
  ~Environment() {
    for (const auto& [name, value] : variables_) unsetenv(name);
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  std::vector<std::pair<const char*, std::string>> variables_;
};

/// An empty folder that is the current one during its lifetime.
class PlanShards : public testing::Test {
 protected:
  void SetUp() override {
    before_ = fs::current_path();
    folder_ = fs::temp_directory_path() / ("plan-shards-" + std::to_string(getpid()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    fs::current_path(folder_);
  }
  void TearDown() override {
    fs::current_path(before_);
    fs::remove_all(folder_);
  }

  std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  fs::path before_;
  fs::path folder_;
};

TEST_F(PlanShards, MergedAreTheSingleRun) {
  for (const tools::Arguments& question : {kQuestion, kModel})
    for (const char* format : {"text", "json", "csv"}) {
      const std::string single = plan(question, {"--format", format});
      for (const int count : {1, 2, 3, 7}) {
        tools::Arguments merge{"--format", format, "--merge"};
        for (int index = count; index >= 1; --index) {
          const std::string shard = std::to_string(index) + "/" + std::to_string(count);
          merge.push_back("part" + std::to_string(index));
          EXPECT_EQ(plan(question, {"--shard", shard, "--resume", merge.back()}),
                    count == 1 ? plan(question) : "");
        }
        EXPECT_EQ(plan(merge), single) << format << ", " << count << " shards";
        for (const auto& file : fs::directory_iterator(folder_)) fs::remove(file);
      }
    }
}

TEST_F(PlanShards, KeepSplitsOfLayersAndModules) {
  const tools::Arguments question{"--model",
                                  "llama3-8b",
                                  "--gpu",
                                  "a100-40",
                                  "--gpus",
                                  "8",
                                  "--global-batch-size",
                                  "16",
                                  "--tp",
                                  "1",
                                  "--micro-batch-size",
                                  "1",
                                  "--schedules",
                                  "1f1b,zb-h1",
                                  "--format",
                                  "csv"};
  const std::string single = plan(question);
  EXPECT_NE(single.find(",fitted,"), std::string::npos) << single;
  EXPECT_NE(single.find(",\"layernorm,mlp\","), std::string::npos) << single;
  EXPECT_EQ(plan(question, {"--resume", "journal"}), single);
  EXPECT_EQ(plan(question, {"--resume", "journal"}), single) << "all of it from the journal";
  for (const char* process : {"0", "1", "2"}) {
    const Environment environment({{"PMI_RANK", process}, {"PMI_SIZE", "3"}});
    EXPECT_EQ(plan(question), std::string(process) == "2" ? single : "");
  }
}

TEST_F(PlanShards, OfALauncherPrintTheSingleRunOnce) {
  const std::string single = plan(kQuestion);
  const std::vector<std::pair<const char*, const char*>> launchers{
      {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
      {"PMI_RANK", "PMI_SIZE"},
      {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"},
      {"SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT"}};
  for (const auto& [rank, size] : launchers) {
    for (const char* process : {"2", "0", "1"}) {
      const Environment environment({{rank, process}, {size, "3"}});
      EXPECT_EQ(plan(kQuestion), std::string(process) == "1" ? single : "") << rank;
    }
    EXPECT_EQ(files(), 0U) << "the parts are removed once the plan is printed";
  }
}

TEST_F(PlanShards, OfAnArrayOfStepsAreCountedTogether) {
  const Environment environment({{"SLURM_ARRAY_TASK_ID", "14"},
                                 {"SLURM_ARRAY_TASK_COUNT", "3"},
                                 {"SLURM_ARRAY_TASK_MIN", "10"},
                                 {"SLURM_ARRAY_TASK_STEP", "2"},
                                 {"SLURM_PROCID", "1"},
                                 {"SLURM_STEP_NUM_TASKS", "4"}});
  EXPECT_EQ(tools::find_launched_shard(),
            (tools::SweepShard{2 * 4 + 1, 12}));  // the third task of three, its second of 4
}

TEST_F(PlanShards, ABatchScriptIsNoShardOfItsJob) {
  // Slurm sets these for the script itself, whose tasks only srun starts.
  const Environment environment({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}});
  EXPECT_EQ(tools::find_launched_shard(), std::nullopt);
}

TEST_F(PlanShards, OneProcessIsNoShard) {
  const Environment environment({{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}});
  EXPECT_EQ(tools::find_launched_shard(), std::nullopt);
}

TEST_F(PlanShards, WhatIsNoShardIsRefused) {
  EXPECT_EQ(tools::parse_shard("2/4"), (tools::SweepShard{1, 4}));
  for (const char* text : {"", "0/4", "5/4", "1", "1/", "/4", "a/4", "1/4x", "-1/4", "1/0"})
    EXPECT_THROW(tools::parse_shard(text), Error) << text;
  const Environment environment({{"SLURM_PROCID", "4"}, {"SLURM_STEP_NUM_TASKS", "4"}});
  EXPECT_THROW(tools::find_launched_shard(), Error);
}

TEST_F(PlanShards, AJournalThatWasCutAnywhereResumesToTheSameBytes) {
  const std::string single = plan(kQuestion);
  EXPECT_EQ(plan(kQuestion, {"--resume", "journal"}), single);
  const std::string whole = traces::read_file("journal");
  std::mt19937 random(20'24);
  for (int attempt = 0; attempt < random_cases(40); ++attempt) {
    std::string cut = whole.substr(0, random() % (whole.size() + 1));
    if (attempt % 3 == 1) cut += "91fa";  // a line that was cut off after its checksum
    std::ofstream("journal", std::ios::binary) << cut;
    EXPECT_EQ(plan(kQuestion, {"--resume", "journal"}), single) << "cut at " << cut.size();
    EXPECT_EQ(traces::read_file("journal").size(), whole.size()) << "what was lost is there again";
  }
}

TEST_F(PlanShards, ASpoiledLineIsEvaluatedAgain) {
  const std::string single = plan(kQuestion, {"--resume", "journal"});
  std::string text = traces::read_file("journal");
  const std::size_t step = text.find("\"step_ns\":", text.size() / 2);
  ASSERT_NE(step, std::string::npos);
  text[step + 10] = text[step + 10] == '9' ? '8' : '9';
  std::ofstream("journal", std::ios::binary) << text;
  EXPECT_EQ(plan(kQuestion, {"--resume", "journal"}), single);
}

TEST_F(PlanShards, AWholeJournalLeavesNothingToEvaluate) {
  plan(kQuestion, {"--resume", "journal"});
  const std::string text = traces::read_file("journal");
  EXPECT_GT(std::count(text.begin(), text.end(), '\n'), 1);
  plan(kQuestion, {"--resume", "journal"});
  EXPECT_EQ(traces::read_file("journal"), text);
}

TEST_F(PlanShards, AreOfOnePlanInAnyOrderAndSpellingOfItsFlags) {
  const std::string single = plan(kQuestion, {"--shard", "1/2", "--resume", "one"});
  const std::size_t size = traces::read_file("one").size();
  const tools::Arguments other{
      "--shard=1/2", "--microbatches", "4..7", "--cap=6", "--resume=one", "--p2p",
      "0.3",         "--vpp=1,2",      "--pp", "2..4"};
  EXPECT_EQ(plan(other), single);
  EXPECT_EQ(traces::read_file("one").size(), size) << "the same results, in another order";
}

TEST_F(PlanShards, GiveEveryKindOfFlagAgain) {
  const tools::Arguments more{
      "--explain", "--recompute",       "none,full", "--assume", "sustained_teraflops=600",
      "--assume",  "host_layer_us=300", "--cap",     "70GiB"};
  const std::string single = plan(kModel, more);
  tools::Arguments resume = more;
  resume.insert(resume.end(), {"--resume", "journal"});
  EXPECT_EQ(plan(kModel, resume), single);
  EXPECT_EQ(plan({"--merge", "journal"}), single);
}

TEST_F(PlanShards, OfDifferentPlansAreNotMixed) {
  plan(kQuestion, {"--shard", "1/2", "--resume", "one"});
  plan({"--pp", "4"}, {"--shard", "2/2", "--resume", "other"});
  EXPECT_THROW(plan({"--merge", "one", "other"}), Error);
  EXPECT_THROW(plan({"--merge", "one"}), Error);  // the second is missing
  plan(kQuestion, {"--shard", "2/4", "--resume", "quarter"});
  EXPECT_THROW(plan({"--merge", "one", "quarter"}), Error);
  EXPECT_THROW(plan({"--pp", "4", "--resume", "one"}), Error);
  EXPECT_THROW(plan({"--pp", "4", "--merge", "one"}), Error);
  std::ofstream("mine") << "not a journal\n";
  EXPECT_THROW(plan(kQuestion, {"--resume", "mine"}), Error);
  EXPECT_EQ(traces::read_file("mine"), "not a journal\n");
}

TEST_F(PlanShards, AnUnfinishedShardIsNotMerged) {
  plan(kQuestion, {"--shard", "1/2", "--resume", "one"});
  plan(kQuestion, {"--shard", "2/2", "--resume", "two"});
  const std::string text = traces::read_file("one");
  std::ofstream("one", std::ios::binary) << text.substr(0, text.size() - 1);
  EXPECT_THROW(plan({"--merge", "one", "two"}), Error);
}

TEST_F(PlanShards, AFileThatChangedSinceIsNoticed) {
  const std::string costs = R"({"format":"bubblescope-costs/1","stages":[)"
                            R"({"forward":1,"backward":2},{"forward":1,"backward":2}]})";
  std::ofstream("costs.json") << costs;
  const tools::Arguments question{"--pp",        "2",          "-m",      "4",
                                  "--schedules", "1f1b,gpipe", "--costs", "costs.json"};
  plan(question, {"--resume", "journal"});
  const tools::Arguments joined{
      "--pp", "2", "-m", "4", "--schedules", "1f1b", "--costs=costs.json"};
  plan(joined, {"--resume", "other"});
  std::ofstream("costs.json") << costs << " ";
  EXPECT_THROW(plan(question, {"--resume", "journal"}), Error);
  EXPECT_THROW(plan(joined, {"--resume", "other"}), Error);
}

/// Returns the line with its correct checksum.
std::string journal_line(const std::string& text) {
  return digest_text(digest(text)) + " " + text + "\n";
}

/// Replaces the first `from` of a journal's line `at` and updates its checksum.
void change_journal(const std::string& path, std::size_t at, const std::string& from,
                    const std::string& to) {
  const std::string head = "bubblescope-plan-journal/1 ";
  std::istringstream lines(traces::read_file(path));
  std::string changed;
  std::string line;
  for (std::size_t number = 0; std::getline(lines, line); ++number) {
    const std::string begin = number == 0 ? head : "";
    std::string text = line.substr(begin.size() + 17);
    if (number == at) {
      ASSERT_NE(text.find(from), std::string::npos) << text;
      text.replace(text.find(from), from.size(), to);
    }
    changed += begin + journal_line(text);
  }
  std::ofstream(path, std::ios::binary) << changed;
}

TEST_F(PlanShards, AJournalMakesNothingHappen) {
  std::ofstream("victim.svg") << "mine";
  for (const char* flags : {R"("--svg","victim.svg")", R"("--resume","victim.svg")",
                            R"("--max-input","1")", R"("--help")", R"("--svg=victim.svg")"}) {
    fs::remove("journal");
    plan(kQuestion, {"--resume", "journal"});
    change_journal("journal", 0, R"("--pp")", std::string(flags) + R"(,"--pp")");
    EXPECT_THROW(plan({"--merge", "journal"}), Error) << flags;
    EXPECT_EQ(traces::read_file("victim.svg"), "mine");
  }
}

TEST_F(PlanShards, AJournalNamesNoFileToRead) {
  std::ofstream("costs.json") << R"({"format":"bubblescope-costs/1","stages":[)"
                                 R"({"forward":1,"backward":2},{"forward":1,"backward":2}]})";
  const tools::Arguments question{"--pp",        "2",    "-m",      "4",
                                  "--schedules", "1f1b", "--costs", "costs.json"};
  const std::string single = plan(question, {"--resume", "journal"});
  EXPECT_THROW(plan({"--merge", "journal"}), Error);
  EXPECT_EQ(plan(question, {"--merge", "journal"}), single);
}

TEST_F(PlanShards, AResultBeyondTheSweepIsIgnored) {
  const std::string single = plan(kQuestion, {"--resume", "journal"});
  change_journal("journal", 1, R"({"at":)", R"({"at":99999999)");
  EXPECT_THROW(plan({"--merge", "journal"}), Error);
  EXPECT_EQ(plan(kQuestion, {"--resume", "journal"}), single);
}

TEST_F(PlanShards, OneAfterAnotherMayShareAJournal) {
  const std::string single = plan(kQuestion);
  EXPECT_EQ(plan(kQuestion, {"--shard", "1/2", "--resume", "journal"}), "");
  EXPECT_EQ(plan(kQuestion, {"--shard", "2/2", "--resume", "journal"}), single);
}

TEST_F(PlanShards, TwoAtOnceDoNotShareAJournal) {
  std::vector<Configuration> one(1);
  one[0].schedule = "1f1b";
  tools::SweepFiles files;
  files.journal = "journal";
  const auto run = [&](const tools::ShowPlan& show) {
    const tools::Evaluate refuse = [](const Configuration&) { return Outcome{{}, "too slow"}; };
    return tools::run_sweep(
        tools::find_journals(files, {"--pp", "2"}), one, [&] { return refuse; }, {}, show);
  };
  const tools::ShowPlan count = [](const auto& outcomes) { return int(outcomes.size()); };
  const tools::ShowPlan try_again = [&](const auto& outcomes) {
    EXPECT_THROW(run(count), Error);
    return count(outcomes);
  };
  EXPECT_EQ(run(try_again), 1);
  EXPECT_EQ(run(count), 1);
}

TEST_F(PlanShards, ALineThatLacksAMemberOrHasAnotherShapeIsEvaluatedAgain) {
  const std::string single = plan(kQuestion, {"--resume", "journal"});
  constexpr const char* kChanges[][2]{{R"("refusal":)", R"("reason":)"},
                                      {R"("pp":)", R"("pp":9)"},
                                      {R"("step_ns":)", R"("step_ns":-)"},
                                      {R"("bubble_ratio":)", R"("bubble_ratio":9)"}};
  for (const auto& [from, to] : kChanges) {
    change_journal("journal", 1, from, to);
    EXPECT_THROW(plan({"--merge", "journal"}), Error) << to;
    fs::copy_file("journal", "resumed", fs::copy_options::overwrite_existing);
    EXPECT_EQ(plan(kQuestion, {"--resume", "resumed"}), single) << to;
    fs::remove("journal");
    plan(kQuestion, {"--resume", "journal"});
  }
}

TEST_F(PlanShards, AJournalThatIsNotThereAsksNothing) {
  try {
    plan({"--merge", "nope"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "nope is not there, or holds no results; run its shard again");
  }
}

TEST_F(PlanShards, AFileThatIsEmptyBeginsAnewAndALineThatIsShortIsRefused) {
  const std::string single = plan(kQuestion);
  std::ofstream("empty").flush();
  EXPECT_EQ(plan(kQuestion, {"--resume", "empty"}), single);
  for (const char* content : {"\n", "bubblescope\n", "\n\n", "bubblescope-plan-journal/1\n"}) {
    std::ofstream("short", std::ios::binary) << content;
    try {
      plan(kQuestion, {"--resume", "short"});
      FAIL() << content;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("is not a plan journal"), std::string::npos)
          << error.what();
    }
  }
}

TEST_F(PlanShards, TooManyConfigurationsAreCountedAndNotMade) {
  for (const tools::Arguments& question :
       {tools::Arguments{"--pp", "1..1000", "-m", "1..1000"},
        tools::Arguments{"--pp", "4", "-m", "1..16777216"},
        tools::Arguments{"--model", "llama3-8b", "--gpus", "16777216", "--global-batch-size",
                         "1073741824", "--tp", "1..60000", "--cp", "1..60000"}})
    EXPECT_THROW(plan(question), Error);
}

}  // namespace
}  // namespace bubblescope::tests
