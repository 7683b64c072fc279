// Answers for new users: which number is meant, what was not compared, and what to write instead.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/golden/reference_data.h"
#include "tests/support/command.h"
#include "tests/support/temporary_folder.h"

namespace bubblescope::tests {
namespace {

using Json = nlohmann::json;

const std::string kStep = "simulate 1f1b --pp 4 -m 8 ";
const std::string kModel = " --pp 4 -m 8 --model llama3-8b --gpu h100 ";

class StatedAnswers : public TemporaryFolder {
 protected:
  static std::string said(const std::string& arguments, int status) {
    const CommandOutcome outcome = run_with_messages(arguments);
    EXPECT_EQ(outcome.status, status) << arguments << "\n" << outcome.output;
    return outcome.output;
  }

  static void expect_says(const std::string& arguments, int status, const std::string& says) {
    const std::string text = said(arguments, status);
    EXPECT_NE(text.find(says), std::string::npos) << arguments << "\n" << text;
  }

  static void expect_silent(const std::string& arguments, int status, const std::string& about) {
    const std::string text = said(arguments, status);
    EXPECT_EQ(text.find(about), std::string::npos) << arguments << "\n" << text;
  }

  std::string write(const std::string& name, const std::string& content) const {
    std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
    std::ofstream(path(name)) << content;
    return path(name);
  }

  std::string convert(const std::string& name, const std::string& schedule,
                      const std::string& to = "pytorch-csv") const {
    std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
    expect_says("convert " + schedule + " --to " + to + " -o " + path(name), 0, "wrote");
    return path(name);
  }
};

TEST_F(StatedAnswers, PlansNameWhatAProfileLacksOnceAndTestItBeforeMemory) {
  const std::string plan = "plan --profile megatron --schedules ";
  const std::string model = " --model llama3-70b --gpus 64 --global-batch-size 128";
  const std::string none = said(plan + "zb-v,gems" + model, 1);
  EXPECT_NE(none.find("2 schedules"), std::string::npos) << none;
  EXPECT_NE(none.find("not tried: megatron has no such schedule (zb-v, gems)"), std::string::npos)
      << none;
  for (const char* misled : {"too much", "--profile changes nothing", "may be faster"})
    EXPECT_EQ(none.find(misled), std::string::npos) << none;
  expect_says(plan + "1f1b,zb-v --pp 4 -m 8", 0, "not tried: megatron has no such schedule");
}

TEST_F(StatedAnswers, ProfilesAreKnownWhereTheyAreBuilt) {
  expect_says("simulate zb-v --pp 4 -m 8 --profile megatron", 1, "(known in pytorch)");
  expect_says(
      "simulate zb-v --pp 4 -m 8 --profile colossalai", 1,
      "colossalai has this schedule in an order that is not implemented (known in pytorch)");
}

TEST_F(StatedAnswers, PlansNameTheirModelAndAdviseNothingThatIsGiven) {
  const std::string plan = "plan --model llama3-70b --gpus 64 --global-batch-size 128 --tp 4 ";
  const std::string text = said(plan, 0);
  EXPECT_NE(text.find("llama3-70b on h100: "), std::string::npos) << text;
  EXPECT_NE(text.find("--reserve-memory 5%"), std::string::npos) << text;
  expect_silent(plan + "--reserve-memory 4%", 0, "(--reserve-memory");
}

// Percent is of a whole: 20 % of a factor would silently be 0.2, below every slowdown.
TEST_F(StatedAnswers, ConditionsInPercentAreOnFractionsAlone) {
  expect_says(kStep + "--fail-if 'makespan_ns>2%'", 2, "with percent; give nanoseconds");
  expect_says("compare 1f1b,gpipe --pp 4 -m 8 --fail-if 'makespan_ns>2%'", 2,
              "write vs_best>2% for what exceeds the best step, or give nanoseconds");
  expect_says("compare 1f1b,gpipe --pp 4 -m 8 --fail-if 'peak_activations>2%'", 2, "give a number");
  const std::string saved = path("step.json");
  expect_says(kStep + "--save " + saved, 0, "wrote");
  expect_says("diff " + saved + " " + saved + " --fail-if 'makespan_ns>2%'", 2,
              "write makespan_ns_change>2% for its change");
  expect_says(kStep + "--fail-if 'bubble_ratio>110%'", 2,
              "never holds, because bubble_ratio is from 0 % to 100 %\n");
  expect_says(kStep + "--fail-if 'bubble_ratio>20'", 2, "for 20 % write 0.2");
}

TEST_F(StatedAnswers, SlowdownIsAFactor) {
  const char* const trace = "traces/straggler/timeline-ST.json.gz";
  if (const std::string missing = missing_reference(trace); !missing.empty())
    GTEST_SKIP() << missing;
  const std::string analyze = "analyze " + reference_folder() + "/" + trace + " --fail-if ";
  for (const char* percent : {"20", "120"})
    expect_says(analyze + "'slowdown>" + percent + "%'", 2, "write slowdown>1.2");
}

/// The plain numbers of a report's step, with the key of what holds them in front.
std::map<std::string, double> scalars_of(const Json& report) {
  const std::map<std::string, std::string> prefixes{{"bubble", "bubble_"},
                                                    {"noise", "noise_"},
                                                    {"interval", "interval_"},
                                                    {"time_to_first_token", "time_to_first_token_"},
                                                    {"serving", ""}};
  std::map<std::string, double> numbers;
  for (const auto& [key, value] : report.items()) {
    if (value.is_number()) numbers[key] = value;
    const auto prefix = prefixes.find(key);
    if (prefix == prefixes.end() || !value.is_object()) continue;
    for (const auto& [inner, number] : scalars_of(value)) numbers[prefix->second + inner] = number;
  }
  for (const char* shape : {"pp", "vpp", "microbatches", "noise_seeds"}) numbers.erase(shape);
  // Old names of the extremes, which stand beside the new ones.
  for (const char* old : {"noise_least_ns", "noise_most_ns"}) numbers.erase(old);
  return numbers;
}

TEST_F(StatedAnswers, EveryNumberOfAStepCanBeInACondition) {
  for (const std::string& step :
       {"simulate 1f1b" + kModel, std::string("simulate 1f1b --pp 4 -m 8 --jitter 5%"),
        std::string("simulate pipedream --pp 4 -m 8"),
        "simulate forward-only --pp 2 -m 3 --arrivals " + write("arrivals", "0 1 2")}) {
    const std::map<std::string, double> numbers = scalars_of(read_report(step));
    ASSERT_GT(numbers.size(), 7U) << step;
    for (const auto& [name, number] : numbers)
      expect_says(step + " --fail-if '" + name + "!=" + (number == 0 ? "0.5" : "0") + "'", 1,
                  "failed: " + name);
  }
}

TEST_F(StatedAnswers, FilesHaveOneNameInAllFormats) {
  const std::string one = convert("mine1.csv", "1f1b --pp 2 -m 4");
  const std::string two = convert("d2/mine1.csv", "gpipe --pp 2 -m 4");
  const Json compared = read_report("compare " + one + "," + two);
  EXPECT_EQ(compared["reports"][0]["schedule"], one);
  EXPECT_EQ(compared["reports"][1]["schedule"], two);
  const Json checked = read_report("check " + one + " " + two);
  EXPECT_EQ(checked[0]["schedule"], one);
  EXPECT_EQ(checked[1]["schedule"], two);
}

TEST_F(StatedAnswers, ConditionsTakeEveryNameThatIsOfOneSchedule) {
  const std::string one = convert("mine.csv", "1f1b --pp 2 -m 4");
  const std::string two = convert("d2/other.csv", "gpipe --pp 2 -m 4");
  const std::string three = convert("d2/mine.csv", "gpipe --pp 2 -m 4");
  const std::string gate = " --fail-if '";
  const std::string twisted = path("./d2/../mine.csv");
  for (const std::string& name : {std::string("mine"), std::string("mine.csv"), one, twisted})
    expect_says("compare " + one + "," + two + gate + name + ":makespan_ns>0'", 1,
                one + ": failed: makespan_ns>0");
  expect_says("compare " + one + "," + three + gate + "mine:makespan_ns>0'", 2, "could be any of ");
  expect_says("compare " + one + "," + two + gate + "mime.csv:makespan_ns>0'", 2,
              "none of the schedules that are compared");
}

TEST_F(StatedAnswers, ListsMayBeginWithStdin) {
  const std::string file = convert("mine.csv", "1f1b --pp 2 -m 4");
  expect_says("compare -,gpipe --pp 2 -m 4 < " + file, 0, "gpipe");
}

TEST_F(StatedAnswers, DifferencesOfShapesComeFirst) {
  const std::string one = path("one.json");
  const std::string two = path("two.json");
  expect_says(kStep + "--save " + one, 0, "wrote");
  expect_says("simulate 1f1b --pp 2 -m 16 --save " + two, 0, "wrote");
  const std::string differ = "A and B are steps of different shapes (m 8 and 16, pp 4 and 2)";
  EXPECT_TRUE(said("diff " + one + " " + two, 0).starts_with(differ));
  expect_says("diff " + one + " " + two + " --format json", 0, "bubblescope: " + differ);
  expect_says("diff " + one + " " + two + " --fail-if 'makespan_ns_change>0.9'", 0, differ);
  const std::string report = path("report.json");
  expect_says("simulate 1f1b --pp 2 -m 16 --format json > " + report, 0, "");
  EXPECT_TRUE(said("diff " + one + " " + report, 0).starts_with(differ));
  expect_silent("diff " + one + " " + one, 0, "different shapes");
  expect_says("diff " + path(".") + " " + one, 2, " --save FILE', and diff that file");
}

TEST_F(StatedAnswers, IntervalsSayWhatNoPublishedRunHad) {
  const std::string none = "none of them had the schedule gems";
  expect_says("simulate gems" + kModel, 0, none);
  const Json gems = read_report("simulate gems" + kModel);
  const std::string key = "unpublished_schedule";
  EXPECT_EQ(gems["interval"][key], "gems");
  EXPECT_FALSE(read_report("simulate 1f1b" + kModel)["interval"].contains(key));
  EXPECT_FALSE(read_report("simulate interleaved --vpp 2" + kModel)["interval"].contains(key));
  const std::string file = convert("own.csv", "1f1b --pp 4 -m 8");
  EXPECT_FALSE(read_report("simulate " + file + kModel)["interval"].contains(key));
  EXPECT_EQ(read_report("compare 1f1b,gems" + kModel)["reports"][1][key], "gems");
  const Json calibrated = read_report("compare 1f1b,gems --slowdown 1.2" + kModel);
  EXPECT_FALSE(calibrated["reports"][1].contains(key));
  const std::string plan = "plan --model llama3-8b --gpus 8 --tp 1 --pp 4 --global-batch-size 16 ";
  const Json planned = read_report(plan + "--schedules gems");
  EXPECT_EQ(planned["plans"][0]["interval"][key], "gems");
  expect_says(plan + "--schedules gems", 0, none);
  expect_silent(plan + "--schedules 1f1b", 0, "none of them had");
  expect_says("compare 1f1b,gems,zb-h1" + kModel, 0,
              "no published run had the schedules gems and zb-h1");
}

TEST_F(StatedAnswers, RecomputationOfFrameworksIsWithinTheBackward) {
  const std::string recompute = kStep + "--recompute full ";
  expect_says(recompute + "--profile megatron", 0, "recomputes within the backward");
  expect_silent(recompute, 0, "within the backward");
  expect_says(recompute + "--profile megatron --costs " +
                  write("own.json", R"({"format":"bubblescope-costs/1","forward":1,"backward":2})"),
              0, "add R's time to the backward in ");
}

TEST_F(StatedAnswers, QuotedTimesNeedUnits) {
  const std::string costs = R"({"format":"bubblescope-costs/1","stages":[{"forward":1,"backward":)";
  const std::string bare = write("bare.json", costs + R"("2"}]})");
  expect_says("simulate 1f1b --pp 1 -m 1 --costs " + bare, 2,
              "/stages/0/backward: '2' has no unit");
  const std::string unit = write("unit.json", costs + R"("2ms"}]})");
  EXPECT_EQ(read_report("simulate 1f1b --pp 1 -m 1 --costs " + unit)["makespan_ns"], 3'000'000);
}

TEST_F(StatedAnswers, EmptyFilesAreCalledEmpty) {
  const std::string empty = write("empty.json", "");
  expect_says(kStep + "--costs " + empty, 2, empty + " is empty");
  expect_says("diff " + empty + " " + empty, 2, empty + " is empty");
}

TEST_F(StatedAnswers, RecordingsAreForAnalyze) {
  const std::string trace = path("trace.json");
  expect_says(kStep + "--trace " + trace, 0, "wrote");
  for (const char* command : {"simulate ", "check "})
    expect_says(command + trace, 2,
                "is a trace of a run, with times; 'bubblescope analyze' reads it");
}

TEST_F(StatedAnswers, NoModeToMendNeedsNoSuggestion) {
  expect_says("check 1f1b --pp 4 -m 8 --suggest", 0, "no suggestion: no mode deadlocks");
}

TEST_F(StatedAnswers, FailedOutputSaysWhy) {
  expect_says(kStep + "> /dev/full", 3, "could not be written whole: No space left on device");
  const std::string nowhere = path("nowhere/x.json");
  for (const char* command :
       {"simulate 1f1b --pp 2 -m 4 --save ", "convert 1f1b --pp 2 -m 4 --to native -o "})
    expect_says(command + nowhere, 2,
                "cannot create " + nowhere + ": No such file or directory; make its folder first");
}

TEST_F(StatedAnswers, FoldersWithoutTracesHaveALinePerFileAndEachAdviceOnce) {
  for (const char* name : {"a.json", "b.json", "c.json"})
    write(name, R"({"traceEvents":[{"ph":"X","name":"foo","ts":1,"dur":2,"pid":0,"tid":0}]})");
  const std::string text = said("analyze " + path("."), 2);
  for (const char* name : {"a.json", "b.json", "c.json"})
    EXPECT_NE(text.find("\n  " + std::string(name) + ": there is no pipeline op"),
              std::string::npos)
        << text;
  const std::string advice = "name each op in its trace";
  ASSERT_NE(text.find(advice), std::string::npos) << text;
  EXPECT_EQ(text.find(advice), text.rfind(advice)) << text;
}

TEST_F(StatedAnswers, SuggestedRulesAreAWholeFile) {
  const std::string trace = write(
      "rank0.json",
      R"([{"ph":"X","name":"my fwd 0","ts":0,"dur":10,"pid":0,"tid":0},)"
      R"({"ph":"X","name":"my bwd 0","ts":20,"dur":20,"pid":0,"tid":0},)"
      R"({"ph":"X","name":"all2all kjt","ts":12,"dur":1,"pid":0,"tid":1},)"
      R"({"ph":"X","name":"Optimizer.step#FusedAdamW.weight","ts":50,"dur":5,"pid":0,"tid":0}])");
  const std::string text = said("analyze " + trace, 2);
  const std::size_t begin = text.find(R"({"format":"bubblescope-rules/1")");
  ASSERT_NE(begin, std::string::npos) << text;
  const std::string rules = text.substr(begin, text.find("]}", begin) + 2 - begin);
  EXPECT_EQ(rules.find("Optimizer"), std::string::npos) << rules;
  EXPECT_EQ(rules.find("all"), std::string::npos) << rules;
  EXPECT_EQ(
      read_report("analyze " + trace + " --rules " + write("rules.json", rules))["microbatches"],
      1);
}

/// The straggler's trace, which holds 32 steps of two replicas, not all consecutive.
TEST_F(StatedAnswers, JobsSayWhatTheyCount) {
  const char* const trace = "traces/straggler/timeline-ST.json.gz";
  if (const std::string missing = missing_reference(trace); !missing.empty())
    GTEST_SKIP() << missing;
  const std::string text = said("analyze " + reference_folder() + "/" + trace + " --try 1f1b", 0);
  for (const char* part :
       {"64 pipelines, one per step and replica, from first op to last: 1.903 s (replica 0",
        "steps:    32 of the 1026 steps from 23 to 1048, so that not all are consecutive",
        "to the first of the next, in the mean of 4 consecutive pairs",
        "period:   2.416 s from one step to the next, in the mean of consecutive ones",
        "(measured) leaves out the first 5 steps", "ops take 5.8 % longer from then on"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

TEST_F(StatedAnswers, MissingRanksExplainWhatAReplayMisses) {
  const char* const trace = "traces/pytorch/1F1B/rank0.json.gz";
  if (const std::string missing = missing_reference(trace); !missing.empty())
    GTEST_SKIP() << missing;
  const std::string text = said("analyze " + reference_folder() + "/" + trace, 0);
  EXPECT_NE(text.find("the ranks without a trace are missing from it"), std::string::npos) << text;
  EXPECT_NE(text.find("kineto: 4 ranks, 8 micro-batches\n"), std::string::npos) << text;
  const std::string folders = said("analyze " + reference_folder() + "/traces", 2);
  EXPECT_LT(folders.find("traces/straggler"), folders.find("traces/kineto")) << folders;
}

}  // namespace
}  // namespace bubblescope::tests
