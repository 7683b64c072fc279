// The shutdown of a run of several processes: all wait for rank 0 as long as it is alive.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <string>
#include <thread>

#include "exec/runtime/heartbeat.h"
#include "exec/runtime/processes.h"
#include "exec/runtime/step_clock.h"
#include "sim/ir/error.h"
#include "tests/support/forked_ranks.h"

namespace bubblescope::tests {
namespace {

void sleep_for(int milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

/// Returns the error of shutdown() with this timeout, and whether it took at least this long.
std::string wait_for_end(exec::SocketTransport& link, Nanos timeout, Nanos min_wait) {
  const Nanos begin = exec::read_monotonic_clock();
  std::string heard;
  try {
    exec::Processes(link, {timeout, nullptr}).shutdown();
  } catch (const Error& error) {
    heard = error.what();
  }
  if (exec::read_monotonic_clock() - begin < min_wait) return "did not wait: " + heard;
  return heard.empty() ? "well" : heard;
}

/// Rank 0 is busy for three times the timeout, and sends heartbeats.
TEST(Shutdown, WaitsForAReferenceThatTakesLongerThanTheTimeout) {
  const auto ends = run_ranks(3, [](exec::SocketTransport& link) -> std::string {
    if (link.self().rank != 0) return wait_for_end(link, 1'000'000'000, 2'500'000'000);
    const exec::Processes processes(link, {});
    const exec::Heartbeat others_wait(processes);
    sleep_for(3000);
    return "well";
  });
  for (const RankEnd& end : ends) EXPECT_EQ(end.said, "well");
}

TEST(Shutdown, NamesRankZeroWhereItDiesMeanwhile) {
  const auto ends = run_ranks(3, [](exec::SocketTransport& link) -> std::string {
    if (link.self().rank != 0) return wait_for_end(link, 60'000'000'000, 0);
    sleep_for(500);
    raise(SIGKILL);
    return "lives";
  });
  EXPECT_FALSE(ends[0].ended);
  for (const std::size_t rank : {1u, 2u}) {
    EXPECT_TRUE(ends[rank].ended);  // at most some seconds after rank 0
    EXPECT_EQ(ends[rank].said, "rank 0 is gone: its process has died before all was done");
  }
}

}  // namespace
}  // namespace bubblescope::tests
