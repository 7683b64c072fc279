// run and compare on a backend whose ranks choose what they run next.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "sim/ir/error.h"
#include "tests/support/command.h"
#include "tests/support/error_text.h"
#include "tests/support/temporary_folder.h"

namespace bubblescope::tests {
namespace {

using Json = nlohmann::json;

Json report_of(int (*command)(const tools::Arguments&), tools::Arguments arguments) {
  arguments.insert(arguments.end(), {"--backend", "cpu"});
  return read_report(command, std::move(arguments));
}

std::string refusal_of(tools::Arguments arguments, const std::string& backend = "cpu") {
  arguments.insert(arguments.end(), {"--backend", backend});
  return error_of([&] { tools::run_run(arguments); });
}

const tools::Arguments kTrain{"--work",       "transformer", "--hidden-size", "8",
                              "--seq-length", "4",           "--vocab-size",  "13"};

tools::Arguments with(tools::Arguments arguments, const tools::Arguments& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

/// Whether most of five runs agree with a prediction; no more run than it takes to tell. A busy
/// machine may notice the end of an op too late, but not in most runs.
bool agrees_mostly(const tools::Arguments& run, const std::function<bool(const Json&)>& agrees) {
  constexpr int kMajority = 3;
  int agreeing = 0;
  int others = 0;
  while (agreeing < kMajority && others < kMajority)
    ++(agrees(report_of(tools::run_run, run)) ? agreeing : others);
  return agreeing == kMajority;
}

TEST(PolicyCommand, RunsInThePredictedOrder) {
  // Backwards first: the last rank alternates in place of four forwards and then four backwards. No
  // two ops become ready at nearly the same time.
  const tools::Arguments step{"gpipe", "--pp", "3",     "-m", "4",        "--f",           "8",
                              "--b",   "13",   "--p2p", "3",  "--policy", "ready:backward"};
  const Json predicted = read_report(tools::run_simulate, step);
  EXPECT_TRUE(agrees_mostly(step, [&](const Json& report) {
    EXPECT_EQ(report["chosen_orders"]["ops"], 24);
    EXPECT_EQ(report["chosen_orders"]["steps"], 3);
    EXPECT_GE(report["chosen_orders"]["steps_as_shown"], 1);
    return report["chosen_orders"]["moved_ops"] == 6 &&
           report["ranks"][2]["peak_activations"] == predicted["ranks"][2]["peak_activations"];
  }));
}

TEST(PolicyCommand, ChoosesTheOpsOfSerialPairsOneByOne) {
  const tools::Arguments step{
      "dualpipev", "--pp", "2",     "-m", "6",         "--f",    "8",        "--i",           "10",
      "--w",       "6",    "--p2p", "3",  "--overlap", "serial", "--policy", "ready:backward"};
  const double predicted = read_report(tools::run_simulate, step)["makespan_ns"];
  // There are 53 ops, and 30 run at another place than in the order of the schedule.
  EXPECT_TRUE(agrees_mostly(step, [&](const Json& report) {
    return report["chosen_orders"]["moved_ops"] == 30 &&
           std::abs(report["makespan_ns"].get<double>() / predicted - 1) < 0.01;
  }));
}

class SavedPolicyRun : public TemporaryFolder {};

TEST_F(SavedPolicyRun, IsAnalyzedLikeTheRun) {
  const std::string saved = path("step.json");
  const Json ran = report_of(tools::run_run, {"gpipe", "--pp", "2", "-m", "4", "--f", "2", "--b",
                                              "3", "--policy", "ready:backward", "--save", saved});
  const Json read = read_report(tools::run_analyze, {saved});
  EXPECT_EQ(read["makespan_ns"], ran["makespan_ns"]);
  for (std::size_t rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(read["ranks"][rank]["idle_by_cause_ns"], ran["ranks"][rank]["idle_by_cause_ns"]);
    EXPECT_EQ(read["ranks"][rank]["peak_activations"], ran["ranks"][rank]["peak_activations"]);
  }
}

// The step ends within a pair, or before ops that other ranks have run in another order.
TEST_F(SavedPolicyRun, IsSavedAlsoWhereItBreaksDown) {
  for (const char* const op : {"6F7", "6F5", "1F3"}) {
    const std::string saved = path(std::string(op) + ".json");
    const CommandOutcome outcome = run_with_messages(
        "run dualpipev --pp 4 -m 16 --f 2 --b 3 --w 1 --p2p 3 --backend cpu --policy "
        "ready:backward --inject rank=1,op=" +
        std::string(op) + ",die --save " + saved);
    EXPECT_EQ(outcome.status, 3) << outcome.output;
    EXPECT_NE(outcome.output.find(std::string("rank 1 died at ") + op), std::string::npos)
        << outcome.output;
    EXPECT_TRUE(std::filesystem::exists(saved)) << outcome.output;
  }
}

// A serial reduction follows all ops of its rank, also in drawn steps.
TEST(PolicyCommand, NoiseHidesNoSerialReduction) {
  const tools::Arguments step{"gpipe",     "--pp",
                              "3",         "-m",
                              "6",         "--f",
                              "4",         "--i",
                              "7",         "--w",
                              "3",         "--p2p",
                              "1",         "--grad-reduction",
                              "serial",    "--reduce-grad",
                              "9",         "--optimizer",
                              "local",     "--optimizer-step",
                              "4",         "--policy",
                              "ready:path"};
  const Json plain = read_report(tools::run_simulate, step);
  const Json noisy = read_report(tools::run_simulate, with(step, {"--jitter", "0.001%"}));
  EXPECT_NEAR(noisy["noise"]["p50_ns"].get<double>(), plain["makespan_ns"].get<double>(), 1e5);
}

TEST(PolicyCommand, TrainsAndVerifiesWhatRanksChose) {
  for (const char* const policy : {"ready", "ready:backward"}) {
    const Json report = report_of(
        tools::run_run, with({"zb-h1", "--pp", "3", "-m", "6", "--policy", policy}, kTrain));
    EXPECT_EQ(report["gradients_match"], true);
    EXPECT_EQ(report["chosen_orders"]["ops"], 54);
    EXPECT_EQ(report["chosen_orders"]["policy"].get<std::string>().rfind(policy, 0), 0u);
  }
}

TEST(PolicyCommand, ComparesTheOrderAndTheChoiceWithTheirPredictions) {
  const Json compared = report_of(
      tools::run_compare, {"gpipe", "--pp", "3", "-m", "4", "--f", "4", "--b", "6", "--p2p", "1",
                           "--policy", "ready:backward", "--work", "sleep"});
  ASSERT_EQ(compared["reports"].size(), 2u);
  EXPECT_FALSE(compared["reports"][0].contains("chosen_orders"));
  EXPECT_TRUE(compared["reports"][1].contains("chosen_orders"));
  EXPECT_EQ(compared["reports"][1]["predicted"]["makespan_ns"], 64'000'000);
}

TEST(RunCommand, ComparesWhatRanksHeldWithTheCap) {
  const std::string run = "run zb-h1 --pp 2 -m 4 --backend cpu --cap ";
  const CommandOutcome over = run_with_messages(run + "1");
  EXPECT_EQ(over.status, 1);
  EXPECT_NE(over.output.find("over --cap 1"), std::string::npos) << over.output;
  EXPECT_EQ(run_with_messages(run + "2").status, 0);
}

TEST(PolicyCommand, RefusesWhatCannotChoose) {
  const auto refuses = [](const tools::Arguments& arguments, const std::string& why,
                          const std::string& backend = "cpu") {
    const std::string refusal =
        refusal_of(with({"--pp", "2", "-m", "4", "--policy", "ready"}, arguments), backend);
    EXPECT_NE(refusal.find(why), std::string::npos) << refusal;
  };
  refuses({"1f1b"}, "enqueues whole steps", "cuda");
  refuses({"pipedream"}, "weights of certain versions");
  refuses({"1f1b", "--offload", "0.5"}, "copied out and back");
  refuses({"1f1b", "--p2p-mode", "fifo"}, "p2p_mode");
  refuses({"1f1b", "--fsdp"}, "leave `fsdp` out");
  refuses({"1f1b", "--network", "bytes=2MB,link=10"}, "do not slow each other");
  refuses(with({"1f1b", "--checkpoint", "/nowhere", "--every", "1"}, kTrain), "--checkpoint");
  const std::string path =
      refusal_of(with({"1f1b", "--pp", "2", "-m", "4", "--policy", "ready:path"}, kTrain));
  EXPECT_NE(path.find("ready:path needs to know"), std::string::npos) << path;
}

}  // namespace
}  // namespace bubblescope::tests
