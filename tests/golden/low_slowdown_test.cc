// Tests what is said where S is below 1, everywhere that S is shown.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/command.h"
#include "tests/support/temporary_folder.h"
#include "traces/files/file.h"

namespace bubblescope::tests {
namespace {

using Json = nlohmann::json;

class LowSlowdown : public TemporaryFolder {
 protected:
  /// Records gpipe on two ranks with two micro-batches, of which the forwards take `forward`
  /// (lists per stage) and the backwards 10 ms.
  std::string record(const std::string& forward) const {
    traces::write_file(path("costs.json"),
                       R"({"format":"bubblescope-costs/1","backward":[10,10],"forward":)"
                       R"({"per_microbatch":)" +
                           forward + "}}");
    EXPECT_EQ(run_command("simulate gpipe --pp 2 -m 2 --costs " + path("costs.json") + " --trace " +
                          path("run.json"))
                  .status,
              0);
    return "analyze " + path("run.json");
  }
};

// Forwards: 5 on rank 0, then 15 on both ranks side by side, then 5 on rank 1: 25 ms. With the mean
// of 10 they take 10 + 10 + 10 = 30 ms. The backwards add 30 ms: S is 55/60.
constexpr const char* kWellPlaced = "[[5,15],[15,5]]";
constexpr const char* kReason =
    "S is 0.917: with every op at the mean of its kind (messages: the median) the pipeline would "
    "take 5 ms longer than it did, as it would through the mean of F alone; so that is no ideal "
    "step, and S does not tell what can be gained";

TEST_F(LowSlowdown, IsTheFirstLineWithItsReason) {
  const std::string analyze = record(kWellPlaced);
  const CommandOutcome text = run_command(analyze);
  EXPECT_TRUE(text.output.starts_with(std::string("trusted with reservations:\n  ") + kReason))
      << text.output;
  const Json report = read_report(analyze);
  EXPECT_NEAR(report["slowdown"]["S"].get<double>(), 55.0 / 60, 1e-6);
  EXPECT_EQ(report["trust"]["why"], Json::array({kReason}));
}

TEST_F(LowSlowdown, IsExplainedToGatesAndInRowsOfJobs) {
  const std::string analyze = record(kWellPlaced);
  const CommandOutcome gated = run_with_messages(analyze + " --format json --fail-if 'slowdown>2'");
  EXPECT_NE(gated.output.find(std::string("bubblescope: ") + kReason), std::string::npos)
      << gated.output;
  const CommandOutcome row = run_command(analyze + " --each");
  EXPECT_NE(row.output.find("limited,0.916667,"), std::string::npos) << row.output;
  EXPECT_NE(row.output.find(kReason), std::string::npos) << row.output;
}

// Forwards of 9 and 11 take 9 + 11 + 9 ms instead of 30: S is 59/60, which is a note.
TEST_F(LowSlowdown, IsANoteWhereItIsNearOne) {
  const Json report = read_report(record("[[9,11],[11,9]]"));
  EXPECT_EQ(report["trust"]["verdict"], "good");
  ASSERT_EQ(report["notes"].size(), 1u) << report["notes"];
  EXPECT_TRUE(report["notes"][0].get<std::string>().starts_with("S is 0.983: "));
}

// Forwards of 15 beside each other and then 5: 15 + 15 + 5 = 35 ms for 30, S is 65/60.
TEST_F(LowSlowdown, IsNotSaidOfStepsThatBalancingShortens) {
  const Json report = read_report(record("[[15,5],[15,5]]"));
  EXPECT_NEAR(report["slowdown"]["S"].get<double>(), 65.0 / 60, 1e-6);
  EXPECT_EQ(report["trust"]["verdict"], "good");
  EXPECT_EQ(report.dump().find("S is "), std::string::npos);
}

}  // namespace
}  // namespace bubblescope::tests
