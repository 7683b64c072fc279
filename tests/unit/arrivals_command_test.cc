// The flags of lengths, arrivals and policies, and files with arrivals.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/command.h"
#include "tests/support/temporary_folder.h"

namespace bubblescope::tests {
namespace {

using Json = nlohmann::json;

class ArrivalsCommand : public TemporaryFolder {
 protected:
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name)) << text;
    return path(name);
  }
};

TEST_F(ArrivalsCommand, TakesTheNumberOfMicrobatchesFromTheFile) {
  const std::string file = write("arrivals.txt", "0 0 4 9");
  const Json report = read_report(tools::run_simulate,
                                  {"forward-only", "--pp", "2", "--arrivals", file, "--f", "2"});
  EXPECT_EQ(report["microbatches"], 4);
  EXPECT_EQ(report["makespan_ns"], 13'000'000);
  EXPECT_EQ(report["ranks"][0]["idle_by_cause_ns"]["arrival"], 3'000'000);
  EXPECT_EQ(report["serving"]["time_to_first_token"]["max_ns"], 6'000'000);
}

TEST_F(ArrivalsCommand, ReadsASavedStepBackWithTheSameCauses) {
  const std::string file = write("arrivals.txt", "0 1 4 9");
  const std::string saved = path("step.json");
  const Json before =
      read_report(tools::run_simulate, {"1f1b", "--pp", "2", "--arrivals", file, "--save", saved});
  const Json after = read_report(tools::run_analyze, {saved});
  EXPECT_EQ(after["makespan_ns"], before["makespan_ns"]);
  for (std::size_t rank = 0; rank < 2; ++rank)
    EXPECT_EQ(after["ranks"][rank]["idle_by_cause_ns"], before["ranks"][rank]["idle_by_cause_ns"]);
}

TEST_F(ArrivalsCommand, ShowsNoCauseThatDoesNotOccur) {
  const Json report = read_report(tools::run_simulate, {"1f1b", "--pp", "2", "-m", "4"});
  EXPECT_FALSE(report["ranks"][0]["idle_by_cause_ns"].contains("arrival"));
}

TEST_F(ArrivalsCommand, ComparesEveryScheduleWithAndWithoutItsPolicy) {
  const Json compared = read_report(
      tools::run_compare, {"gpipe,1f1b", "--pp", "2", "-m", "4", "--policy", "ready:backward"});
  std::string names;
  for (const Json& report : compared["reports"])
    names += report["schedule"].get<std::string>() + " ";
  EXPECT_NE(names.find("1f1b"), std::string::npos) << names;
  EXPECT_EQ(compared["reports"].size(), 4u);
}

TEST_F(ArrivalsCommand, LengthsThatAreAllTheSameChangeNothing) {
  const std::string file = write("lengths.txt", "4096 4096, 4096\n4096 # all alike\n");
  const tools::Arguments model{"1f1b", "--pp", "2",        "--model", "llama3-8b",
                               "--tp", "2",    "--format", "json"};
  tools::Arguments listed = model;
  listed.insert(listed.end(), {"--lengths", file});
  tools::Arguments plain = model;
  plain.insert(plain.end(), {"-m", "4", "--seq-length", "4096"});
  EXPECT_EQ(call_command(tools::run_simulate, listed).output,
            call_command(tools::run_simulate, plain).output);
}

// Every micro-batch takes on every stage what it takes in a step of its own length and the same
// layers.
TEST_F(ArrivalsCommand, LengthsGiveEveryMicrobatchItsOwnTimes) {
  const std::string file = write("lengths.txt", "[2048, 8192]");
  const auto busy = [&](const tools::Arguments& more) {
    tools::Arguments arguments{"1f1b",        "--pp",        "2",   "--model",
                               "llama3-8b",   "--tp",        "2",   "--layout",
                               "Et*17|t*15L", "--optimizer", "none"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Json report = read_report(tools::run_simulate, arguments);
    return report["ranks"][0]["busy_by_kind_ns"]["F"].get<std::int64_t>();
  };
  EXPECT_EQ(busy({"--lengths", file}),
            busy({"-m", "1", "--seq-length", "2048"}) + busy({"-m", "1", "--seq-length", "8192"}));
}

TEST_F(ArrivalsCommand, WrongLengthsAreRefusedWithTheFlag) {
  const std::string odd = write("odd.txt", "4096 4097");
  const auto error_of = [](const tools::Arguments& arguments) -> std::string {
    try {
      tools::run_simulate(arguments);
    } catch (const std::exception& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(error_of({"1f1b", "--pp", "2", "--model", "llama3-8b", "--tp", "2", "--lengths", odd})
                .find("4097 tokens of micro-batch 1"),
            std::string::npos);
  EXPECT_NE(error_of({"1f1b", "--pp", "2", "--lengths", odd}).find("needs --model"),
            std::string::npos);
  EXPECT_NE(error_of({"1f1b", "--pp", "2", "-m", "3", "--arrivals", odd}).find("2 times"),
            std::string::npos);
}

}  // namespace
}  // namespace bubblescope::tests
