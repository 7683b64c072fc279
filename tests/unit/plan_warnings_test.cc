// The messages of `plan` and `partition` besides their result.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "sim/ir/error.h"
#include "tools/command.h"

namespace bubblescope::tests {
namespace {

namespace fs = std::filesystem;

/// Returns a command's stderr.
std::string said(int (*run)(const tools::Arguments&), const tools::Arguments& arguments) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  std::string refusal;
  try {
    run(arguments);
  } catch (const Error& error) {
    refusal = error.what();
  }
  std::fflush(stdout);
  std::fflush(stderr);
  testing::internal::GetCapturedStdout();
  return testing::internal::GetCapturedStderr() + refusal;
}

std::size_t times_in(const std::string& text, const std::string& words) {
  std::size_t times = 0;
  for (std::size_t at = text.find(words); at != std::string::npos; at = text.find(words, at + 1))
    ++times;
  return times;
}

TEST(PlanWarnings, SayOnceThatBackwardsAreUnequal) {
  const std::string text =
      said(tools::run_plan, {"--pp", "2,4", "-m", "4,8", "--schedules", "1f1b,zb-h1,zb-v", "--b",
                             "5", "--i", "2", "--w", "2"});
  EXPECT_EQ(times_in(text, "backwards are split by"), 1U) << text;
  EXPECT_NE(text.find("i 2 ms and w 2 ms, the others b 5 ms"), std::string::npos) << text;
  EXPECT_EQ(
      said(tools::run_plan, {"--pp", "2", "-m", "4", "--schedules", "1f1b,gpipe", "--b", "5"}), "");
}

TEST(PlanWarnings, SayOnceWhichCostsChangeNothing) {
  const tools::Arguments question{"--pp", "2,4", "-m", "8", "--schedules", "1f1b,zb-h1"};
  tools::Arguments unused = question;
  unused.insert(unused.end(), {"--optimizer-step", "5"});
  const std::string text = said(tools::run_plan, unused);
  EXPECT_EQ(times_in(text, "--optimizer-step changes nothing"), 1U) << text;
  unused.insert(unused.end(), {"--optimizer", "barrier"});
  EXPECT_EQ(said(tools::run_plan, unused), "");
}

TEST(PlanWarnings, SayThatTrainingWithoutFlushesIsStale) {
  const std::string text =
      said(tools::run_plan, {"--pp", "4", "-m", "8,16", "--schedules", "1f1b,pipedream"});
  EXPECT_EQ(times_in(text, "pipedream does not flush"), 1U) << text;
  EXPECT_EQ(times_in(text, "1f1b does not flush"), 0U) << text;
}

TEST(PlanWarnings, SayWhatIsTakenForGranted) {
  EXPECT_NE(said(tools::run_plan, {"--schedules", "1f1b"}).find("planned for --pp 4 -m 8"),
            std::string::npos);
  EXPECT_NE(said(tools::run_plan, {"--schedules", "1f1b", "--pp", "2"}).find("planned for -m 8"),
            std::string::npos);
  EXPECT_EQ(said(tools::run_plan, {"--schedules", "1f1b", "--pp", "2", "-m", "4"}), "");
}

class PlanFiles : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("plan-files-" + std::to_string(getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }

  fs::path folder_;
};

TEST_F(PlanFiles, AChangedCostFileIsNotCalledAnotherPlan) {
  const std::string costs = R"({"format":"bubblescope-costs/1","stages":[)"
                            R"({"forward":1,"backward":2},{"forward":1,"backward":2}]})";
  const std::string file = write("costs.json", costs);
  const std::string journal = folder_ / "journal";
  const tools::Arguments question{"--pp", "2",       "-m", "4",        "--schedules",
                                  "1f1b", "--costs", file, "--resume", journal};
  EXPECT_EQ(said(tools::run_plan, question), "");
  write("costs.json", costs + " ");
  const std::string text = said(tools::run_plan, question);
  EXPECT_NE(text.find("is of this plan, but a file that it reads has changed"), std::string::npos)
      << text;
}

TEST_F(PlanFiles, WhatIsKeptDoesNotComeFromStdin) {
  const std::string journal = folder_ / "journal";
  EXPECT_NE(said(tools::run_plan, {"--pp", "2", "-m", "4", "--costs", "-", "--resume", journal})
                .find("give a file instead of -"),
            std::string::npos);
  EXPECT_NE(said(tools::run_plan, {"--pp", "2", "-m", "4", "--resume", "/dev/null"})
                .find("/dev/null is not a plain file"),
            std::string::npos);
  EXPECT_NE(said(tools::run_plan, {"--merge", "-"}).find("--merge reads plain files"),
            std::string::npos);
}

TEST_F(PlanFiles, PartitionSaysWhatItTakesForGranted) {
  const std::string profile =
      write("gpt.csv",
            "op_name,forward-compute,backward-compute,input_size,output_size,weights,activations\n"
            "encoder-embedding,173.6,1486.7,0.008,8,208,12\n"
            "enc-attention,3000,5000,8,8,32,500\n"
            "enc-MLP,1900,3300,8,8,64,90\n");
  const std::string text = said(tools::run_partition, {profile, "--workers", "2"});
  EXPECT_NE(text.find("--repeat-layers says how many"), std::string::npos) << text;
  EXPECT_NE(text.find("without --bandwidth"), std::string::npos) << text;
  EXPECT_EQ(said(tools::run_partition, {profile, "--stages", "2", "--repeat-layers", "4"}), "");
}

}  // namespace
}  // namespace bubblescope::tests
