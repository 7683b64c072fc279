// Tests that the replicas of a Chrome trace's ops follow from their arguments.
#include "traces/measured/chrome_replicas.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "sim/ir/timeline.h"
#include "tests/support/chrome_text.h"
#include "tests/support/trace_refusal.h"
#include "traces/files/trace_format.h"
#include "traces/measured/assemble_steps.h"

namespace bubblescope::tests {
namespace {

std::string text(int number) { return std::to_string(number); }

traces::ObservedTrace parse(const Events& events) {
  return traces::parse_trace({"t.json", events.list()});
}

/// Adds the ops of a rank for one micro-batch: F takes 10 us, B 20 us. Replica 1 is 1 us later.
void add_rank(Events& events, int replica, int rank, std::pair<int, int> place,
              const std::string& arguments) {
  const std::string given = R"("step":3,"mb_id":0,)" + arguments;
  const auto [pid, tid] = place;
  events.slice("forward-compute", pid, tid, 10 * rank + replica, 10, given)
      .slice("backward-compute", pid, tid, 50 - 20 * rank + replica, 20, given);
}

/// Two replicas of two ranks. `place` gives the pid and the tid, and `arguments` those of an op
/// besides its step and micro-batch.
template <class Place, class Arguments>
Events run_replicas(Place place, Arguments arguments) {
  Events events;
  for (int replica = 0; replica < 2; ++replica)
    for (int rank = 0; rank < 2; ++rank)
      add_rank(events, replica, rank, place(replica, rank), arguments(replica, rank));
  return events;
}

std::pair<int, int> on_threads(int replica, int rank) { return {7, 10 * replica + rank}; }

/// Each replica is a step of its own, in which both ranks are busy for 30 of 70 us.
void expect_two_replicas(const traces::ObservedTrace& trace) {
  const traces::AssembledSteps read = traces::assemble_steps(trace);
  ASSERT_EQ(read.steps.size(), 2u);
  for (int replica = 0; replica < 2; ++replica) {
    const traces::MeasuredStep& step = read.steps[static_cast<std::size_t>(replica)];
    EXPECT_EQ(step.replica, replica);
    EXPECT_EQ(step.program.ranks, 2);
    EXPECT_EQ(compute_makespan(step.timeline), 70'000);
  }
  EXPECT_TRUE(read.remarks.faults.empty()) << read.remarks.faults.front();
}

// All four ranks are threads of one process, so that the arguments alone tell the replicas apart.
TEST(ChromeReplicas, AreThoseThatArgumentsState) {
  for (const std::string key :
       {"dp", "dp_rank", "dp_id", "data_parallel_rank", "replica", "replica_id"}) {
    SCOPED_TRACE(key);
    const auto number = [&](int replica) { return "\"" + key + "\":" + text(replica); };
    expect_two_replicas(parse(run_replicas(on_threads, [&](int replica, int rank) {
      return number(replica) + R"(,"pp_rank":)" + text(rank);
    })));
    expect_two_replicas(
        parse(run_replicas(on_threads, [&](int replica, int) { return number(replica); })));
  }
}

// The ranks of a job count on through its replicas, or alternate between them.
TEST(ChromeReplicas, MayHaveRanksThatCountThroughTheJob) {
  const auto run = [](auto number) {
    return parse(run_replicas(on_threads, [&](int replica, int rank) {
      return R"("dp":)" + text(replica) + R"(,"rank":)" + text(number(replica, rank));
    }));
  };
  expect_two_replicas(run([](int replica, int rank) { return 2 * replica + rank; }));
  expect_two_replicas(run([](int replica, int rank) { return 2 * rank + replica; }));
}

// The pids of a replica's processes have gaps that say nothing.
TEST(ChromeReplicas, MayHaveAProcessForEachRank) {
  const auto place = [](int replica, int rank) {
    return std::pair(30 + 20 * replica + 7 * rank * (replica + 1), 0);
  };
  expect_two_replicas(
      parse(run_replicas(place, [](int replica, int) { return R"("dp":)" + text(replica); })));
}

// The processes of each replica are in the reverse order of their stages.
TEST(ChromeReplicas, HaveTheRanksThatTheirStagesState) {
  Events events;
  for (int replica = 0; replica < 2; ++replica)
    for (int rank = 0; rank < 2; ++rank) {
      const int pid = 3 - 2 * replica - rank;
      const std::string arguments = R"("dp_rank":)" + text(replica);
      events.slice(text(rank) + "F0", pid, 0, 10 * rank + replica, 10, arguments)
          .slice(text(rank) + "B0", pid, 0, 50 - 20 * rank + replica, 20, arguments);
    }
  expect_two_replicas(parse(events));
}

// Each file has one rank, of a process with the same number, and states its replica.
TEST(ChromeReplicas, MayHaveAFileForEachRank) {
  traces::ObservedTrace trace;
  for (int replica = 0; replica < 2; ++replica)
    for (int rank = 0; rank < 2; ++rank) {
      Events events;
      add_rank(events, replica, rank, {0, 0},
               R"("dp_rank":)" + text(replica) + R"(,"pp_rank":)" + text(rank));
      traces::append(trace, parse(events));
    }
  expect_two_replicas(trace);
}

// No file states its replica: the n-th of a rank is of the n-th one, in whatever order ranks come.
TEST(ChromeReplicas, OfFilesThatStateNoneAreCountedByRank) {
  for (const bool has_whole_pipelines : {true, false}) {
    traces::ObservedTrace trace;
    for (int first = 0; first < 2; ++first)
      for (int second = 0; second < 2; ++second) {
        const int replica = has_whole_pipelines ? first : second;
        const int rank = has_whole_pipelines ? second : first;
        Events events;
        add_rank(events, replica, rank, {0, 0}, R"("pp_rank":)" + text(rank));
        traces::append(trace, parse(events));
      }
    for (const std::string& doubt : traces::assemble_steps(trace).remarks.doubts)
      EXPECT_EQ(doubt.find("missing"), doubt.npos) << doubt;
    expect_two_replicas(trace);
  }
}

// Replica 3 has two processes for each rank, so that all replicas are counted.
TEST(ChromeReplicas, ThatSeveralRanksStateAreCounted) {
  Events events;
  for (int process = 0; process < 3; ++process)
    for (int rank = 0; rank < 2; ++rank)
      add_rank(events, process, rank, {10 * process + rank, 0},
               R"("dp":)" + text(process == 0 ? 0 : 3) + R"(,"pp_rank":)" + text(rank));
  const traces::AssembledSteps read = traces::assemble_steps(parse(events));
  ASSERT_EQ(read.steps.size(), 3u);
  for (std::size_t at = 0; at < 3; ++at) EXPECT_EQ(read.steps[at].replica, static_cast<int>(at));
  const std::vector<std::string>& doubts = read.remarks.doubts;
  EXPECT_TRUE(std::any_of(doubts.begin(), doubts.end(), [](const std::string& doubt) {
    return doubt.find("up to 2 ranks state the same rank of the pipeline") != doubt.npos;
  }));
}

// F takes 10 us, B 20 us and a message 2 us, on the thread of its rank or on one of its own.
TEST(ChromeReplicas, HaveTheirOwnMessages) {
  for (const int apart : {0, 5}) {
    Events events;
    for (int replica = 0; replica < 2; ++replica)
      for (int rank = 0; rank < 2; ++rank) {
        const auto [pid, tid] = on_threads(replica, rank);
        const std::string given =
            R"("step":3,"mb_id":0,"dp":)" + text(replica) + R"(,"pp_rank":)" + text(rank);
        events.slice("forward-compute", pid, tid, 12 * rank + replica, 10, given)
            .slice("backward-compute", pid, tid, 44 - 22 * rank + replica, 20, given)
            .slice(rank == 0 ? "forward-send" : "forward-recv", pid, tid + apart, 10 + replica, 2,
                   given)
            .slice(rank == 0 ? "backward-recv" : "backward-send", pid, tid + apart, 42 + replica, 2,
                   given);
      }
    const traces::ObservedTrace trace = parse(events);
    EXPECT_EQ(trace.recorders.size(), 4u) << apart;
    const traces::AssembledSteps read = traces::assemble_steps(trace);
    ASSERT_EQ(read.steps.size(), 2u) << apart;
    for (const traces::MeasuredStep& step : read.steps) {
      EXPECT_EQ(step.program.ranks, 2) << apart;
      EXPECT_EQ(compute_makespan(step.timeline), 64'000) << apart;
    }
  }
}

TEST(ChromeReplicas, WithUnlikeRanksAreRefused) {
  Events events;
  for (int rank = 0; rank < 5; ++rank)
    events.slice("Forward 0", 0, rank, 10 * rank, 10,
                 R"("rank":)" + text(rank) + R"(,"dp":)" + text(rank / 3));
  EXPECT_NE(refusal(events.list()).find("unlike ranks (3 of replica 0, 2 of replica 1)"),
            std::string::npos)
      << refusal(events.list());
}

TEST(ChromeReplicas, OfOpsThatStateNoneFollowFromTheirThread) {
  Events events;
  const std::string given = R"("step":3,"mb_id":0,"pp_rank":)";
  for (int replica = 0; replica < 2; ++replica)
    for (int rank = 0; rank < 2; ++rank) {
      const auto [pid, tid] = on_threads(replica, rank);
      events
          .slice("forward-compute", pid, tid, 10 * rank + replica, 10,
                 given + text(rank) + R"(,"dp_rank":)" + text(replica))
          .slice("backward-compute", pid, tid, 50 - 20 * rank + replica, 20, given + text(rank));
    }
  expect_two_replicas(parse(events));
  events.slice("backward-compute", 7, 99, 90, 10, given + "1");
  EXPECT_NE(refusal(events.list()).find("'backward-compute' does not, and nothing else says"),
            std::string::npos)
      << refusal(events.list());
}

}  // namespace
}  // namespace bubblescope::tests
