// Ctrl-C during a plan: the results are kept and counted, and the plan continues from there.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>
#include <system_error>
#include <thread>

#include "tests/support/command.h"
#include "tests/support/temporary_folder.h"
#include "tools/command.h"
#include "tools/interrupt.h"
#include "tools/plan/sweep.h"

namespace bubblescope::tests {
namespace {

TEST(InterruptedSweeps, StopBetweenConfigurationsAndRecordWhatIsDone) {
  const tools::InterruptCatcher catcher;
  std::size_t recorded = 0;
  std::size_t evaluated = 0;
  tools::SweepOptions options;
  options.record = [&](std::size_t, std::span<const Outcome> outcomes) {
    recorded += outcomes.size();
  };
  const auto make_evaluate = [&]() -> tools::Evaluate {
    return [&](const Configuration&) {
      if (++evaluated == 20) std::raise(SIGINT);
      return Outcome{};
    };
  };
  try {
    tools::sweep(std::vector<Configuration>(100), make_evaluate, options);
    FAIL() << "was not interrupted";
  } catch (const tools::InterruptedSweep& stopped) {
    EXPECT_EQ(stopped.done, 20U);
  }
  EXPECT_EQ(evaluated, 20U);
  EXPECT_EQ(recorded, 20U);
}

/// Sends SIGINT to this process once the file has more than its first line.
void interrupt_once_written(const std::string& path) {
  std::thread([path] {
    std::error_code ignored;
    constexpr std::uintmax_t kFirstLine = 2'000;
    for (;;) {
      const std::uintmax_t size = std::filesystem::file_size(path, ignored);
      if (!ignored && size > kFirstLine) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    std::raise(SIGINT);
  }).detach();
}

class InterruptedPlansDeathTest : public TemporaryFolder {};

TEST_F(InterruptedPlansDeathTest, SayHowFarTheyCameAndContinueFromThere) {
  const std::string journal = path("plan.journal");
  const tools::Arguments question{"--pp",       "2..8",      "-m", "8..256:8", "--schedules",
                                  "1f1b,zb-h1", "--threads", "1",  "--format", "csv"};
  tools::Arguments resumed = question;
  resumed.insert(resumed.end(), {"--resume", journal});
  EXPECT_EXIT(
      {
        interrupt_once_written(journal);
        tools::run_plan(resumed);
      },
      testing::KilledBySignal(SIGINT),
      "bubblescope: interrupted; .*plan.journal now has [0-9]+ configurations more; .*: "
      "bubblescope "
      "plan --pp 2..8 .*--resume .*plan.journal");
  EXPECT_GT(std::filesystem::file_size(journal), 2'000U);
  EXPECT_EQ(call_command(tools::run_plan, resumed).output,
            call_command(tools::run_plan, question).output);
}

}  // namespace
}  // namespace bubblescope::tests
