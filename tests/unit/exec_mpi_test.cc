// The parts of the backend mpi that can be tested without MPI: clock offsets, ranks' results,
// heartbeats and the error if the module is missing.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "exec/mpi/mpi_transport.h"
#include "exec/mpi/mpi_watchdog.h"
#include "exec/runtime/clock_sync.h"
#include "exec/runtime/heartbeat.h"
#include "exec/runtime/rank_part.h"
#include "sim/ir/error.h"
#include "tests/support/error_text.h"
#include "tests/support/lone_transport.h"

namespace bubblescope::tests {
namespace {

std::string message_of(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(ClockOffset, TrustsTheQuickestAnswer) {
  // This clock is 1000 ahead. The second sample took 4, so rank 0's reading of 1002 is taken to be
  // from 2002 here. The others were delayed in one direction.
  EXPECT_EQ(
      exec::find_clock_offset({{1100, 150, 1200}, {2000, 1002, 2004}, {3000, 2001, 3100}}).ahead,
      1000);
  EXPECT_EQ(exec::find_clock_offset({{10, 5'000'010, 10}}).ahead, -5'000'000);
  EXPECT_EQ(exec::find_clock_offset({{1100, 150, 1200}, {2000, 1002, 2005}}).error, 3);
}

/// Whether a second child of this process finds the first one stopped.
bool sees_stopped(pid_t first) {
  const pid_t second = fork();
  if (second == 0) {
    const std::string error_text = exec::find_stopped_process();
    const bool named = error_text.find("does not answer: its process " + std::to_string(first) +
                                       " is stopped") != std::string::npos;
    _exit(named ? 0 : 1);
  }
  int status = -1;
  waitpid(second, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(MpiWatchdog, NamesAStoppedProcessOfTheSameRun) {
  const pid_t child = fork();
  if (child == 0)
    for (;;) pause();
  EXPECT_FALSE(sees_stopped(child));
  kill(child, SIGSTOP);
  waitpid(child, nullptr, WUNTRACED);
  EXPECT_TRUE(sees_stopped(child));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

TEST(Heartbeat, IsSentToOthersWhileItLasts) {
  std::atomic<int> shown = 0;
  LoneTransport transport({0, 2});
  transport.at_send = [&](exec::MessageTag tag) { shown += tag == exec::MessageTag::kControl; };
  const exec::Processes two(transport, {});
  {
    const exec::Heartbeat heartbeat(two);
    for (int wait = 0; wait < 1000 && shown < 2; ++wait)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_GE(shown, 2);
  }
  const int at_the_end = shown;
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_EQ(shown, at_the_end);
  const exec::Heartbeat alone(exec::this_process_alone());  // there are no others
}

TEST(MpiTransport, WithoutItsModuleSaysWhatToInstall) {
  try {
    exec::MpiLibrary("/nowhere/bubblescope_mpi.so");
    FAIL() << "there is no such module";
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::kMachine);
    EXPECT_EQ(std::string(error.what())
                  .find("the backend mpi: its module cannot be loaded: install libopenmpi-dev and "
                        "build again (/nowhere/bubblescope_mpi.so: "),
              0u)
        << error.what();
  }
}

TEST(RankPart, TravelsAsBytes) {
  exec::RankPart part;
  part.result.spans = {{3, 10, 20}};
  part.result.reason = exec::AbortReason::kFailure;
  part.result.blocked = {{4, true, std::nullopt}, {5, false, InstructionId{2}}};
  part.result.failure = std::make_exception_ptr(Error(Fault::kProblem, "no memory for 2F3"));
  part.arrivals = {{2, 9, 9}};
  const exec::RankPart read = exec::read_part(exec::to_bytes(part));
  EXPECT_EQ(read.result.spans[0].end, 20);
  EXPECT_EQ(read.result.reason, exec::AbortReason::kFailure);
  EXPECT_TRUE(read.result.blocked[0].started);
  EXPECT_EQ(read.result.blocked[0].awaited, std::nullopt);
  EXPECT_EQ(read.result.blocked[1].awaited, InstructionId{2});
  EXPECT_EQ(read.arrivals[0].id, 2u);
  EXPECT_EQ(message_of(read.result.failure), "no memory for 2F3");
  exec::Blob cut = exec::to_bytes(part);
  cut.resize(cut.size() - 3);
  EXPECT_EQ(error_of([&] { exec::read_part(cut); }),
            "there are fewer bytes than announced; they were damaged, or not all processes run "
            "the same program");
}

TEST(RankPart, AMessageEndsWhenItArrives) {
  Program program;
  program.instructions.resize(2);
  std::vector<exec::RankPart> parts(2);
  parts[0].result.spans = {{0, 0, 5}, {1, 5, 5}};
  parts[1].arrivals = {{1, 8, 8}};
  exec::set_arrivals(parts, program);
  EXPECT_EQ(parts[0].result.spans[0].end, 5);
  EXPECT_EQ(parts[0].result.spans[1].end, 8);
}

TEST(RankPart, OfARankThatIsGoneNamesIt) {
  const exec::RankPart part = exec::missing_part(2, exec::AbortReason::kNone);
  EXPECT_EQ(part.result.reason, exec::AbortReason::kTimeout);
  EXPECT_EQ(message_of(part.result.failure),
            "rank 2 does not answer: its process has died or hangs");
}

TEST(RankPart, OfARankThatIsGoneAfterItsOwnPartNamesIt) {
  std::vector<exec::RankPart> parts(3);
  const std::vector<bool> last{false, false, true};
  parts[2].result.spans = {{3, 10, 20}};
  EXPECT_EQ(exec::fail_gone_ranks(parts, last)[2].result.failure, nullptr);  // the step is complete
  parts[0].result.reason = exec::AbortReason::kInterrupt;
  const std::vector<exec::RankPart> stopped = exec::fail_gone_ranks(parts, last);
  EXPECT_EQ(message_of(stopped[2].result.failure),
            "rank 2 does not answer: its process has died or hangs");
  EXPECT_EQ(stopped[2].result.spans.size(), 1u);
  EXPECT_EQ(stopped[1].result.failure, nullptr);
}

}  // namespace
}  // namespace bubblescope::tests
