// compare: shapes that files give, and conditions on its rows.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/command.h"
#include "tests/support/temporary_folder.h"

namespace bubblescope::tests {
namespace {

using Json = nlohmann::json;

class ComparedFiles : public TemporaryFolder {
 protected:
  /// Writes the schedule as PyTorch's csv, and returns its path.
  std::string write(const std::string& file, const std::string& schedule) const {
    EXPECT_EQ(
        run_with_messages("convert " + schedule + " --to pytorch-csv -o " + path(file)).status, 0);
    return path(file);
  }

  void expect(const std::string& arguments, int status, const std::string& says) const {
    const CommandOutcome outcome = run_with_messages("compare " + arguments);
    EXPECT_EQ(outcome.status, status) << arguments << "\n" << outcome.output;
    EXPECT_NE(outcome.output.find(says), std::string::npos) << arguments << "\n" << outcome.output;
  }
};

TEST_F(ComparedFiles, GiveTheirShapeToSchedulesByName) {
  const std::string mine = write("mine.csv", "1f1b --pp 4 -m 8");
  expect(mine + ",zb-h1", 0, "have --pp 4 -m 8, as " + mine + " states");
  expect(mine + ",zb-h1 --pp 4", 0, "have -m 8, as " + mine + " states");
  const Json reports = read_report("compare " + mine + ",zb-h1")["reports"];
  const Json asked = read_report("compare 1f1b,zb-h1 --pp 4 -m 8")["reports"];
  ASSERT_EQ(reports.size(), 2U);
  EXPECT_EQ(reports[0]["makespan_ns"], asked[0]["makespan_ns"]);
  EXPECT_EQ(reports[1], asked[1]);
  // A flag that contradicts a file refuses the file, not the name.
  expect(mine + ",zb-h1 --pp 2", 2, mine + " has --pp 4, not 2");
}

TEST_F(ComparedFiles, OfTwoShapesGiveNone) {
  const std::string mine = write("mine.csv", "1f1b --pp 4 -m 8");
  const std::string wide = write("wide.csv", "1f1b --pp 8 -m 8");
  expect(mine + "," + wide + ",zb-h1", 2, mine + " has --pp 4 and " + wide + " has --pp 8");
  expect(mine + "," + wide, 0, "makespan");
  expect("zb-h1,1f1b", 2, "compare needs --pp and -m, or --shapes");
}

// 'all' leaves out what refuses the shape; a schedule that is named beside it is refused aloud.
TEST_F(ComparedFiles, StandBesideAllSchedules) {
  const std::string mine = write("mine.csv", "1f1b --pp 3 -m 6");
  const Json all = read_report("compare all --pp 3 -m 6");
  const Json both = read_report("compare " + mine + ",all");
  ASSERT_EQ(both["reports"].size(), all["reports"].size() + 1);
  EXPECT_EQ(both["reports"][1], all["reports"][0]);
  EXPECT_TRUE(both["refused"].empty()) << both["refused"];
  expect("all,dualpipe,1F1B --pp 3 -m 6", 1, "--pp must be even");
  const Json named = read_report("compare all,1f1b --pp 3 -m 6");
  EXPECT_EQ(named["reports"].size(), all["reports"].size());
}

// A file has its chunks and slices; the flags are for schedules by name, where there are any.
TEST_F(ComparedFiles, LeaveChunksAndSlicesToSchedulesByName) {
  const std::string mine = write("mine.csv", "1f1b --pp 4 -m 8");
  for (const char* const others :
       {",interleaved --vpp 2", ",seq1f1b --slices 4", ",zb-v,interleaved --shapes 4x8x2"}) {
    const Json report = read_report("compare " + mine + others);
    EXPECT_TRUE(report["refused"].empty()) << others << report["refused"];
    EXPECT_EQ(report["reports"][0]["vpp"], 1) << others;
  }
  EXPECT_EQ(read_report("compare " + mine + ",interleaved --vpp 4")["reports"][1]["vpp"], 4);
  expect(mine + " --vpp 2", 2, mine + " has --vpp 1, not 2");
  expect(mine + ",1f1b --vpp 2", 0, "--vpp changes nothing: none of these schedules takes it");
  expect(mine + ",1f1b --shapes 4x8x2", 0, "the chunks of --shapes 4x8x2 change nothing");
}

TEST_F(ComparedFiles, GiveTheirShapeWhereTheyAreChecked) {
  const std::string mine = write("mine.csv", "gpipe --pp 4 -m 8");
  const std::string said = "have --pp 4 -m 8, as " + mine + " states";
  for (const std::string& list : {mine + ",1f1b", mine + " 1f1b", "1f1b," + mine}) {
    const CommandOutcome outcome = run_with_messages("check " + list);
    EXPECT_EQ(outcome.status, 0) << list << "\n" << outcome.output;
    for (const std::string& text : {said, std::string("1f1b: legal"), std::string("4 3 2 1")})
      EXPECT_NE(outcome.output.find(text), std::string::npos) << list << "\n" << outcome.output;
  }
  const CommandOutcome wide = run_with_messages("check " + mine + ",interleaved --vpp 2");
  EXPECT_EQ(wide.status, 0) << wide.output;
  // One that cannot be read is reported, and the others are checked.
  const CommandOutcome missing = run_with_messages("check nowhere.csv," + mine + ",1f1b");
  EXPECT_EQ(missing.status, 2) << missing.output;
  EXPECT_NE(missing.output.find("1f1b: legal"), std::string::npos) << missing.output;
  const std::string other = write("wide.csv", "1f1b --pp 8 -m 8");
  const CommandOutcome two = run_with_messages("check " + mine + "," + other + ",1f1b");
  EXPECT_EQ(two.status, 2);
  EXPECT_NE(two.output.find("has --pp 4 and " + other + " has --pp 8"), std::string::npos);
}

TEST_F(ComparedFiles, AllAreTriedOnATraceAsTheyAreCompared) {
  const std::string step = path("step.json");
  run_with_messages("simulate zb-h1 --pp 2 -m 4 --save " + step);
  const CommandOutcome tried = run_with_messages("analyze " + step + " --try all");
  for (const char* name : {"gpipe ", "zb-v ", "dualpipe "})
    EXPECT_NE(tried.output.find(name), std::string::npos) << tried.output;
}

TEST_F(ComparedFiles, WithoutTimesAreNoStepsToDiffOrAnalyze) {
  for (const char* format : {"pytorch-csv", "text", "native"}) {
    const std::string file = path(std::string("mine.") + format);
    run_with_messages("convert 1f1b --pp 2 -m 2 --to " + std::string(format) + " -o " + file);
    for (const std::string& command : {"diff " + file + " " + file, "analyze " + file}) {
      const CommandOutcome outcome = run_with_messages(command);
      EXPECT_EQ(outcome.status, 2) << command;
      EXPECT_NE(outcome.output.find("is a schedule and has no times; "), std::string::npos)
          << command << "\n"
          << outcome.output;
    }
  }
}

// 1F1B on 4 ranks takes 8 (1 + 2) + 3 (1 + 2) = 33 ms, of which 9 / 33 = 27.3 % are a bubble;
// zb-h1 takes 27 ms. 33 / 27 is 22 % above the best.
TEST_F(ComparedFiles, AConditionIsAboutEveryScheduleOrOne) {
  const std::string both = "1f1b,zb-h1 --pp 4 -m 8 --fail-if ";
  expect(both + "'bubble_ratio>0.3'", 0, "zb-h1");
  expect(both + "'bubble_ratio>0.2'", 1, "1f1b: failed: bubble_ratio>0.2 (bubble_ratio is 0.2727");
  EXPECT_EQ(
      run_with_messages("compare " + both + "'bubble_ratio>0.2'").output.find("zb-h1: failed"),
      std::string::npos);
  expect(both + "'zb-h1:bubble_ratio>0.2'", 0, "zb-h1");
  expect(both + "'1F1B: makespan_ns > 32999999'", 1, "1f1b: failed: makespan_ns > 32999999");
  expect(both + "'1f1b:vs_best>0.2'", 1, "1f1b: failed: vs_best>0.2 (vs_best is 0.2222");
  expect(both + "'zb-h1:vs_best>0'", 0, "zb-h1");
  // A limit may be in percent, where the number is a fraction.
  expect(both + "'1f1b:vs_best>22%'", 1, "1f1b: failed: vs_best>22% (vs_best is 0.2222");
  expect(both + "'vs_best > 22.5 %'", 0, "1f1b");
  // A refusal is shown, whatever the condition asks of it.
  const std::string refused = "dualpipe,1f1b --pp 3 -m 8 --fail-if ";
  expect(refused + "'dualpipe:vs_best>0'", 1, "--pp must be even");
  expect(refused + "'1f1b:vs_best>0'", 1, "--pp must be even");
  EXPECT_EQ(run_with_messages("compare " + refused + "'1f1b:vs_best>0'").output.find("failed"),
            std::string::npos);
  const std::string noisy = "1f1b,zb-h1 --pp 4 -m 8 --jitter 10% --seeds 20 --fail-if ";
  expect(noisy + "'zb-h1:makespan_ns>1'", 1, "--fail-if looks at the step without noise");
  expect(noisy + "'zb-h1:noise_p50_ns>27000001'", 1, "zb-h1: failed: noise_p50_ns");
}

TEST_F(ComparedFiles, AConditionNamesRowsOfFilesShapesAndPolicies) {
  const std::string mine = write("mine.csv", "gpipe --pp 4 -m 8");
  expect(mine + ",zb-h1 --fail-if '" + mine + ":vs_best>0.02'", 1, mine + ": failed: vs_best>0.02");
  const std::string shapes = "1f1b,zb-h1 --shapes 4x8,4x16 --fail-if ";
  expect(shapes + "'1f1b:bubble_ratio>0.2'", 1, "1f1b 4x8: failed");
  expect(shapes + "'1f1b 4x16:bubble_ratio>0.2'", 0, "1f1b 4x16");
  const std::string policy = "zb-h1 --pp 4 -m 8 --policy ready --fail-if ";
  expect(policy + "'zb-h1 ready:makespan_ns>0'", 1, "zb-h1 ready: failed");
  const std::string fixed = run_with_messages("compare " + policy + "'zb-h1:makespan_ns>0'").output;
  EXPECT_NE(fixed.find("zb-h1: failed"), std::string::npos) << fixed;
  EXPECT_EQ(fixed.find("zb-h1 ready: failed"), std::string::npos) << fixed;
}

// The best row is the fastest that keeps its limits, in every format.
TEST_F(ComparedFiles, HaveTheirDistanceFromTheBestInFilesAsWell) {
  const std::string run = "compare 1f1b,zb-h1,gpipe --pp 4 -m 8 ";
  const std::string csv = run_command(run + "--format csv").output;
  EXPECT_NE(csv.find(",vs_best\n"), std::string::npos) << csv;
  EXPECT_NE(csv.find(",0.2222222222222222\n\"zb-h1\""), std::string::npos) << csv;
  // A cap of 1 is kept by none, so that the best is the fastest of all, as without one.
  for (const char* const cap : {"", "--cap 1 "}) {
    const Json reports = Json::parse(run_command(run + cap + "--format json").output)["reports"];
    EXPECT_EQ(reports[0]["vs_best"], 6.0 / 27) << cap;
    EXPECT_EQ(reports[1]["vs_best"], 0) << cap;
  }
  const std::string wide = "compare 1f1b,zb-h2 --pp 4 -m 8 --cap 4 --format json";
  const Json capped = Json::parse(run_command(wide).output)["reports"];
  EXPECT_EQ(capped[0]["vs_best"], 0) << "zb-h2 is faster, and exceeds its cap";
  EXPECT_LT(capped[1]["vs_best"], 0);
  std::ofstream(path("zb-h2.json")) << capped[1].dump();
  EXPECT_EQ(run_command("diff " + path("zb-h2.json") + " " + path("zb-h2.json")).status, 0);
}

TEST_F(ComparedFiles, HaveTheirMeasuredDistanceFromTheBest) {
  const std::string run =
      "compare 1f1b --shapes 2x2,2x8 --f 5 --b 10 --backend cpu --work sleep --steps 1 ";
  const Json reports = Json::parse(run_command(run + "--format json").output)["reports"];
  EXPECT_GT(reports[0]["vs_best"], 0.01);
  EXPECT_EQ(reports[1]["vs_best"], 0);
  EXPECT_NE(run_command(run + "--format csv").output.find(",vs_best\n"), std::string::npos);
}

TEST_F(ComparedFiles, AConditionThatMeansNothingIsBadUsage) {
  const std::string both = "1f1b,zb-h1 --pp 4 -m 8 --fail-if ";
  expect(both + "'zb-h2:bubble_ratio>0.1'", 2,
         "'zb-h2' is none of the schedules that are compared; did you mean 'zb-h1'? (1f1b, zb-h1)");
  expect(both + "'buble_ratio>0.1'", 2, "did you mean 'bubble_ratio'?");
  expect(both + "'zb-h1:buble_ratio>0.1'", 2, "did you mean 'bubble_ratio'?");
  expect(both + "'bubble_ratio>10'", 2, "for 10 % write 0.1");
  expect(both + "'vs_best<-1'", 2, "never holds");
  expect(both + "bubble_ratio", 2, "is not a condition");
  expect(both + "'bubble_ratio>%'", 2, "is not a condition");
  expect(both + "'bubble_ratio>101%'", 2, "never holds");
  for (const std::string number : {"makespan_ns", "peak_activations", "bubble_time_ns"})
    expect(both + "'" + number + ">5%'", 2,
           "compares " + number + ", which is no fraction, with percent");
  expect(both + "'step>1'", 2, "did you mean 'makespan_ns'?");
  expect(both + "':vs_best>0'", 2, "names no schedule before its colon");
}

TEST_F(ComparedFiles, ConditionsOnMeasuredStepsKnowTheErrorsOfPredictions) {
  const std::string run = "1f1b --pp 2 -m 2 --backend cpu --work sleep --steps 1 --fail-if ";
  expect(run + "'makespan_ns<1'", 0, "1f1b");
  expect(run + "'1f1b:error_makespan>=0'", 1, "1f1b: failed: error_makespan>=0");
  expect(run + "'error_makspan>0'", 2, "did you mean 'error_makespan'?");
  expect(run + "'vs_best>0'", 0, "vs best");  // one schedule is the best
  // 3 (5 + 10) ms for 2 micro-batches are 22.5 ms for each, 9 (5 + 10) ms for 8 are 16.9.
  const std::string two =
      "1f1b --shapes 2x2,2x8 --f 5 --b 10 --backend cpu --work sleep --steps 1 --fail-if ";
  expect(two + "'1f1b 2x2:vs_best>1%'", 1, "1f1b 2x2: failed: vs_best>1%");
  expect(two + "'1f1b 2x8:vs_best>1%'", 0, "1f1b 2x8");
}

}  // namespace
}  // namespace bubblescope::tests
