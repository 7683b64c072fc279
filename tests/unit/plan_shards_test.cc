// One plan by several processes or in several runs gives the bytes of a single run.
#include "tools/plan/plan_shards.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <sstream>
#include <utility>

#include "sim/ir/digest.h"
#include "sim/ir/error.h"
#include "tests/support/error_text.h"
#include "tests/support/sanitized.h"
#include "tools/command.h"
#include "traces/files/file.h"

namespace bubblescope::tests {
namespace {

namespace fs = std::filesystem;

tools::Arguments words_of(const std::string& line) {
  std::istringstream words(line);
  return {std::istream_iterator<std::string>(words), {}};
}

const tools::Arguments kQuestion = words_of("--pp 2..4 --vpp 1,2 -m 4..7 --p2p 0.3 --cap 6");
const tools::Arguments kModel = words_of(
    "--model llama3-8b --gpus 16 --global-batch-size 32 --schedules 1f1b,zb-h1 --tp 1,2 "
    "--micro-batch-size 1");
const std::string kNoJournal = " is not a plan journal; give one, or a file that does not exist";
constexpr const char* kCosts = R"({"format":"bubblescope-costs/1","stages":[)"
                               R"({"forward":1,"backward":2},{"forward":1,"backward":2}]})";

std::string plan(tools::Arguments arguments, const tools::Arguments& more = {}) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const std::string error = error_of([&] { tools::run_plan(arguments); });
  std::fflush(stdout);
  testing::internal::GetCapturedStderr();
  const std::string printed = testing::internal::GetCapturedStdout();
  if (!error.empty()) throw Error(error);
  return printed;
}

std::string plan_error(const tools::Arguments& words, const tools::Arguments& more = {}) {
  return error_of([&] { plan(words, more); });
}

testing::AssertionResult lacks_results(const tools::Arguments& words) {
  return fails_with([&] { plan(words); },
                    " results; give those of all shards, and run shards that did not end again");
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
  const tools::Arguments question = words_of(
      "--model llama3-8b --gpu a100-40 --gpus 8 --global-batch-size 16 --tp 1 "
      "--micro-batch-size 1 --schedules 1f1b,zb-h1 --format csv");
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
    EXPECT_EQ(error_of([&] { tools::parse_shard(text); }),
              "'" + std::string(text) + "' is not a shard; write 1/4 to 4/4 for four shards");
  const Environment environment({{"SLURM_PROCID", "4"}, {"SLURM_STEP_NUM_TASKS", "4"}});
  EXPECT_EQ(error_of([&] { tools::find_launched_shard(); }),
            "SLURM_PROCID=4 does not go with SLURM_STEP_NUM_TASKS=4; unset them, or give --shard "
            "K/N");
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
  const tools::Arguments other = words_of(
      "--shard=1/2 --microbatches 4..7 --cap=6 --resume=one --p2p 0.3 --vpp=1,2 --pp 2..4");
  EXPECT_EQ(plan(other), single);
  EXPECT_EQ(traces::read_file("one").size(), size) << "the same results, in another order";
}

TEST_F(PlanShards, GiveEveryKindOfFlagAgain) {
  const tools::Arguments more = words_of(
      "--explain --recompute none,full --assume sustained_teraflops=600 "
      "--assume host_layer_us=300 --cap 70GiB");
  const std::string single = plan(kModel, more);
  tools::Arguments resume = more;
  resume.insert(resume.end(), {"--resume", "journal"});
  EXPECT_EQ(plan(kModel, resume), single);
  EXPECT_EQ(plan({"--merge", "journal"}), single);
}

TEST_F(PlanShards, OfDifferentPlansAreNotMixed) {
  plan(kQuestion, {"--shard", "1/2", "--resume", "one"});
  plan({"--pp", "4"}, {"--shard", "2/2", "--resume", "other"});
  EXPECT_EQ(plan_error({"--merge", "one", "other"}),
            "other is of another plan: 'plan --pp 4'; give another file, or these flags");
  EXPECT_TRUE(lacks_results({"--merge", "one"}));  // the second is missing
  plan(kQuestion, {"--shard", "2/4", "--resume", "quarter"});
  EXPECT_TRUE(lacks_results({"--merge", "one", "quarter"}));
  for (const char* use : {"--resume", "--merge"})
    EXPECT_EQ(plan_error({"--pp", "4", use, "one"}),
              "one is of another plan: 'plan --pp 2..4 --vpp 1,2 --microbatches 4..7 --p2p 0.3 "
              "--cap 6'; give another file, or these flags");
  std::ofstream("mine") << "not a journal\n";
  EXPECT_EQ(plan_error(kQuestion, {"--resume", "mine"}), "mine" + kNoJournal);
  EXPECT_EQ(traces::read_file("mine"), "not a journal\n");
}

TEST_F(PlanShards, AnUnfinishedShardIsNotMerged) {
  plan(kQuestion, {"--shard", "1/2", "--resume", "one"});
  plan(kQuestion, {"--shard", "2/2", "--resume", "two"});
  const std::string text = traces::read_file("one");
  std::ofstream("one", std::ios::binary) << text.substr(0, text.size() - 1);
  EXPECT_TRUE(lacks_results({"--merge", "one", "two"}));
}

TEST_F(PlanShards, AFileThatChangedSinceIsNoticed) {
  std::ofstream("costs.json") << kCosts;
  const tools::Arguments two = words_of("--pp 2 -m 4 --schedules 1f1b,gpipe --costs costs.json");
  plan(two, {"--resume", "journal"});
  const tools::Arguments joined = words_of("--pp 2 -m 4 --schedules 1f1b --costs=costs.json");
  plan(joined, {"--resume", "other"});
  std::ofstream("costs.json") << kCosts << " ";
  const std::string changed =
      " is of this plan, but a file that it reads has changed since, or the program has; give "
      "another file, or remove it";
  EXPECT_EQ(plan_error(two, {"--resume", "journal"}), "journal" + changed);
  EXPECT_EQ(plan_error(joined, {"--resume", "other"}), "other" + changed);
}

/// Replaces the first `from` of a journal's line `at` and updates its checksum.
void change_journal(const std::string& path, std::size_t at, const std::string& from,
                    const std::string& to) {
  const std::string head = "bubblescope-plan-journal/1 ";
  std::istringstream lines(traces::read_file(path));
  std::string changed, line;
  for (std::size_t number = 0; std::getline(lines, line); ++number) {
    const std::string begin = number == 0 ? head : "";
    std::string text = line.substr(begin.size() + 17);
    if (number == at) {
      ASSERT_NE(text.find(from), std::string::npos) << text;
      text.replace(text.find(from), from.size(), to);
    }
    changed += begin + digest_text(digest(text)) + " " + text + "\n";
  }
  std::ofstream(path, std::ios::binary) << changed;
}

TEST_F(PlanShards, AJournalMakesNothingHappen) {
  std::ofstream("victim.svg") << "mine";
  constexpr const char* kRefused[][2]{
      {R"("--svg","victim.svg")", "a plan that reads victim.svg, "},
      {R"("--resume","victim.svg")", "a plan that reads victim.svg, "},
      {R"("--max-input","1")", "no flag is called '--max-input'"},
      {R"("--help")", "a journal's plan asks for help; run its shards again"},
      {R"("--svg=victim.svg")", "a plan that reads victim.svg, "}};
  for (const auto& [flags, refused] : kRefused) {
    fs::remove("journal");
    plan(kQuestion, {"--resume", "journal"});
    change_journal("journal", 0, R"("--pp")", std::string(flags) + R"(,"--pp")");
    EXPECT_TRUE(fails_with([] { plan({"--merge", "journal"}); }, refused)) << flags;
    EXPECT_EQ(traces::read_file("victim.svg"), "mine");
  }
}

TEST_F(PlanShards, AJournalNamesNoFileToRead) {
  std::ofstream("costs.json") << kCosts;
  const tools::Arguments question = words_of("--pp 2 -m 4 --schedules 1f1b --costs costs.json");
  const std::string single = plan(question, {"--resume", "journal"});
  EXPECT_EQ(plan_error({"--merge", "journal"}),
            "the shards belong to a plan that reads costs.json, and files are named only on the "
            "command line; give its flags again: 'plan --pp 2 --microbatches 4 --schedules 1f1b "
            "--costs costs.json'");
  EXPECT_EQ(plan(question, {"--merge", "journal"}), single);
}

TEST_F(PlanShards, AResultBeyondTheSweepIsIgnored) {
  const std::string single = plan(kQuestion, {"--resume", "journal"});
  change_journal("journal", 1, R"({"at":)", R"({"at":99999999)");
  EXPECT_TRUE(lacks_results({"--merge", "journal"}));
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
    EXPECT_EQ(error_of([&] { run(count); }),
              "journal is in use by another plan; give each shard a file of its own, or wait");
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
    EXPECT_TRUE(lacks_results({"--merge", "journal"})) << to;
    fs::copy_file("journal", "resumed", fs::copy_options::overwrite_existing);
    EXPECT_EQ(plan(kQuestion, {"--resume", "resumed"}), single) << to;
    fs::remove("journal");
    plan(kQuestion, {"--resume", "journal"});
  }
}

TEST_F(PlanShards, AJournalThatIsNotThereAsksNothing) {
  EXPECT_EQ(plan_error({"--merge", "nope"}),
            "nope is not there, or holds no results; run its shard again");
}

TEST_F(PlanShards, AFileThatIsEmptyBeginsAnewAndALineThatIsShortIsRefused) {
  const std::string single = plan(kQuestion);
  std::ofstream("empty").flush();
  EXPECT_EQ(plan(kQuestion, {"--resume", "empty"}), single);
  for (const char* content : {"\n", "bubblescope\n", "\n\n", "bubblescope-plan-journal/1\n"}) {
    std::ofstream("short", std::ios::binary) << content;
    EXPECT_EQ(plan_error(kQuestion, {"--resume", "short"}), "short" + kNoJournal);
  }
}

TEST_F(PlanShards, TooManyConfigurationsAreCountedAndNotMade) {
  const auto says = [](const std::string& question, const char* refused) {
    return fails_with([&] { plan(words_of(question)); }, refused);
  };
  const char* const too_many = " configurations are too many, the limit is 1000000; vary less";
  EXPECT_TRUE(says("--pp 1..1000 -m 1..1000", too_many));
  EXPECT_TRUE(says("--pp 4 -m 1..16777216", "'1..16777216' has more than 100000 numbers"));
  EXPECT_TRUE(
      says("--model llama3-8b --gpus 16777216 --global-batch-size 1073741824 "
           "--tp 1..60000 --cp 1..60000",
           too_many));
}

}  // namespace
}  // namespace bubblescope::tests
