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

TEST_F(ComparedFiles, AConditionThatMeansNothingIsBadUsage) {
  const std::string both = "1f1b,zb-h1 --pp 4 -m 8 --fail-if ";
  expect(both + "'zb-h2:bubble_ratio>0.1'", 2,
         "'zb-h2' is none of the schedules that are compared; did you mean 'zb-h1'? (1f1b, zb-h1)");
  expect(both + "'buble_ratio>0.1'", 2, "did you mean 'bubble_ratio'?");
  expect(both + "'zb-h1:buble_ratio>0.1'", 2, "did you mean 'bubble_ratio'?");
  expect(both + "'bubble_ratio>10'", 2, "for 10 % write 0.1");
  expect(both + "'vs_best<-1'", 2, "never holds");
  expect(both + "bubble_ratio", 2, "is not a condition");
  expect(both + "':vs_best>0'", 2, "names no schedule before its colon");
}

TEST_F(ComparedFiles, ConditionsOnMeasuredStepsKnowTheErrorsOfPredictions) {
  const std::string run = "1f1b --pp 2 -m 2 --backend cpu --work sleep --steps 1 --fail-if ";
  expect(run + "'makespan_ns<1'", 0, "1f1b");
  expect(run + "'1f1b:error_makespan>=0'", 1, "1f1b: failed: error_makespan>=0");
  expect(run + "'error_makspan>0'", 2, "did you mean 'error_makespan'?");
}

}  // namespace
}  // namespace bubblescope::tests
