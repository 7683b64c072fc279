// Tests ranks that share their rank of the pipeline: tensor-parallel peers are shown once, others
// are data-parallel replicas.
#include "traces/measured/tensor_peers.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "sim/ir/error.h"
#include "tests/support/chrome_text.h"
#include "traces/files/trace_format.h"
#include "traces/measured/assemble_steps.h"

namespace bubblescope::tests {
namespace {

std::string text(int number) { return std::to_string(number); }

/// The pid and the tid of a rank, and its arguments besides the step and the micro-batch.
struct Rank {
  int pid = 0;
  int tid = 0;
  std::string arguments;
};

/// Adds the ops of a rank: F takes 1000 us, B 2000 us, `late` us later than its first peer.
void add_rank(Events& events, const Rank& rank, int pp, int late) {
  const std::string arguments = R"("step":3,"mb_id":0)" + rank.arguments;
  events.slice("forward-compute", rank.pid, rank.tid, 1000 * pp + late, 1000, arguments)
      .slice("backward-compute", rank.pid, rank.tid, 4000 - 2000 * pp + late, 2000, arguments);
}

/// Two ranks of two peers each; the second peer is `late`.
template <class Describe>
Events run(Describe describe, int late) {
  Events events;
  for (int pp = 0; pp < 2; ++pp)
    for (int peer = 0; peer < 2; ++peer) add_rank(events, describe(pp, peer), pp, peer * late);
  return events;
}

traces::AssembledSteps read(const Events& events) {
  return traces::assemble_steps(traces::parse_trace({"t.json", events.list()}));
}

bool says_first_is_shown(const traces::AssembledSteps& read) {
  for (const std::string& note : read.remarks.notes)
    if (note == traces::kFirstOfTensorRanks) return true;
  return false;
}

void expect_one_pipeline(const traces::AssembledSteps& read) {
  ASSERT_EQ(read.steps.size(), 1u);
  EXPECT_EQ(read.steps[0].program.ranks, 2);
  EXPECT_EQ(compute_makespan(read.steps[0].timeline), 6'000'000);
  EXPECT_TRUE(says_first_is_shown(read));
}

void expect_two_replicas(const traces::AssembledSteps& read) {
  ASSERT_EQ(read.steps.size(), 2u);
  EXPECT_EQ(read.steps[0].program.ranks, 2);
  EXPECT_EQ(read.steps[1].replica, 1);
  EXPECT_FALSE(says_first_is_shown(read));
}

/// Where the ranks of a job lie: in processes, in threads of one process, and in nodes.
std::vector<Rank (*)(int)> places() {
  return {[](int rank) {
            return Rank{rank, 0, ""};
          },
          [](int rank) {
            return Rank{0, rank, ""};
          },
          [](int rank) {
            return Rank{rank / 2, rank % 2, ""};
          }};
}

Rank with(Rank rank, const std::string& arguments) {
  rank.arguments = arguments;
  return rank;
}

// Their ops begin within 1 % of the time of a forward.
TEST(TensorPeers, ThatAreStatedAreShownOnce) {
  for (const std::string key : {"tp", "tp_rank", "tensor_parallel_rank"})
    for (Rank (*const place)(int) : places()) {
      const auto describe = [&](int pp, int peer) {
        return with(place(2 * pp + peer),
                    R"(,"pp":)" + text(pp) + ",\"" + key + "\":" + text(peer));
      };
      const traces::AssembledSteps steps = read(run(describe, 5));
      expect_one_pipeline(steps);
      EXPECT_TRUE(steps.remarks.doubts.empty()) << steps.remarks.doubts.front();
      EXPECT_FALSE(read(run(describe, 300)).remarks.doubts.empty());
    }
}

// veScale's ranks of the job are beside those of the pipeline.
TEST(TensorPeers, WithRanksOfTheJobAreShownOnce) {
  const auto describe = [](int pp, int peer) {
    return Rank{
        0, 10 * (2 * pp + peer),
        R"(,"rank":)" + text(2 * pp + peer) + R"(,"pp":)" + text(pp) + R"(,"tp":)" + text(peer)};
  };
  expect_one_pipeline(read(run(describe, 0)));
}

// Without ranks of the pipeline, those of the job count through the groups.
TEST(TensorPeers, ThatCountThroughTheJobAreCountedByGroups) {
  const auto describe = [](int pp, int peer) {
    return Rank{2 * pp + peer, 0,
                R"(,"rank":)" + text(2 * pp + peer) + R"(,"tp_rank":)" + text(peer)};
  };
  expect_one_pipeline(read(run(describe, 5)));
}

// Nothing states the group of two ranks of a process: their times tell peers from replicas.
TEST(TensorPeers, ThatAreNotStatedRunInStep) {
  for (const bool has_rank : {true, false}) {
    const auto describe = [&](int pp, int peer) {
      return Rank{0, 2 * pp + peer,
                  R"(,"pp_rank":)" + text(pp) +
                      (has_rank ? R"(,"rank":)" + text(2 * pp + peer) : std::string())};
    };
    expect_one_pipeline(read(run(describe, 5)));
    expect_two_replicas(read(run(describe, 300)));
  }
}

// The ops state their stages, and nothing but these and the times says which ranks are peers.
TEST(TensorPeers, OfTheSameStagesRunInStep) {
  const auto run_stages = [](int late) {
    Events events;
    for (int rank = 0; rank < 4; ++rank) {
      const int stage = rank / 2;
      const int start = rank % 2 * late;
      const std::string arguments = R"("step":3,"rank":)" + text(rank);
      events.slice(text(stage) + "F0", rank, 0, 1000 * stage + start, 1000, arguments)
          .slice(text(stage) + "B0", rank, 0, 4000 - 2000 * stage + start, 2000, arguments);
    }
    return events;
  };
  expect_one_pipeline(read(run_stages(5)));
  expect_two_replicas(read(run_stages(300)));
}

/// Two ranks of two peers each, in a file for each; `key` states which of the peers one is.
traces::ObservedTrace read_files(const std::string& key, int late) {
  traces::ObservedTrace trace;
  for (int pp = 0; pp < 2; ++pp)
    for (int peer = 0; peer < 2; ++peer) {
      Events events;
      add_rank(events, {0, 0, R"(,"pp_rank":)" + text(pp) + ",\"" + key + "\":" + text(peer)}, pp,
               late * peer);
      const std::string list = events.list();
      traces::append(trace, traces::parse_trace({text(2 * pp + peer) + ".json", list}));
    }
  return trace;
}

// Those of a simulated job run their ops at the same time to the nanosecond.
TEST(TensorPeers, InFilesOfTheirOwnAreShownOnce) {
  for (const int late : {0, 5})
    expect_one_pipeline(traces::assemble_steps(read_files("tp_rank", late)));
}

TEST(TensorPeers, InFilesThatStateReplicasAreReplicas) {
  for (const int late : {0, 300})
    expect_two_replicas(traces::assemble_steps(read_files("dp_rank", late)));
}

// A file that is given twice has the times of the first, and states the same place.
TEST(TensorPeers, InOneFileThatIsGivenTwiceAreRefused) {
  Events events;
  add_rank(events, {0, 0, R"(,"pp_rank":0,"tp_rank":0)"}, 0, 0);
  traces::ObservedTrace trace;
  const std::string list = events.list();
  traces::append(trace, traces::parse_trace({"a.json", list}));
  EXPECT_THROW(traces::append(trace, traces::parse_trace({"b.json", list})), Error);
}

}  // namespace
}  // namespace bubblescope::tests
