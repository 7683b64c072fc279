// Tests ranks that share their rank of the pipeline: tensor-parallel peers are shown once, others
// are data-parallel replicas.
#include "traces/measured/tensor_peers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "sim/ir/error.h"
#include "tests/support/chrome_text.h"
#include "tests/support/error_text.h"
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

/// The part of a note before these words; empty where there is none.
std::string note_before(const traces::AssembledSteps& read, const std::string& words) {
  for (const std::string& note : read.remarks.notes)
    if (const std::size_t at = note.find(words); at != note.npos) return note.substr(0, at);
  return "";
}

constexpr const char* kAssumed = " run every op at the same time, so they count as tensor-parallel";

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
      EXPECT_EQ(note_before(steps, kAssumed), "");
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
    EXPECT_EQ(note_before(read(run(describe, 5)), kAssumed), "ranks of the same args.pp_rank");
    expect_two_replicas(read(run(describe, 300)));
  }
}

// Only the peers of the first rank run in step, so that nothing is assumed of any.
TEST(TensorPeers, OfSomeRanksOnlyAreReplicas) {
  Events events;
  for (int pp = 0; pp < 2; ++pp)
    for (int peer = 0; peer < 2; ++peer)
      add_rank(events, {0, 2 * pp + peer, R"(,"pp_rank":)" + text(pp)}, pp, 300 * pp * peer);
  const traces::AssembledSteps steps = read(events);
  expect_two_replicas(steps);
  EXPECT_EQ(note_before(steps, kAssumed), "");
  EXPECT_TRUE(std::any_of(
      steps.remarks.doubts.begin(), steps.remarks.doubts.end(), [](const std::string& doubt) {
        return doubt.find("and others do not: all count as replicas") != doubt.npos;
      }));
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
  EXPECT_EQ(note_before(read(run_stages(5)), kAssumed), "ranks (0, 1), (2, 3)");
  expect_two_replicas(read(run_stages(300)));
}

/// The ops and messages of two ranks of two peers each: F takes 1000 us, B 2000 us and a message
/// 100 us. Messages lie `apart` threads from the compute ops; only the latter state their rank of
/// the job, if any does.
Events run_with_messages(int late, int apart, bool has_rank) {
  Events events;
  for (int pp = 0; pp < 2; ++pp)
    for (int peer = 0; peer < 2; ++peer) {
      const int tid = 10 * (2 * pp + peer);
      const int start = peer * late;
      const std::string given = R"("step":3,"mb_id":0,"pp_rank":)" + text(pp);
      const std::string ranked =
          given + (has_rank ? R"(,"rank":)" + text(2 * pp + peer) : std::string());
      events.slice("forward-compute", 0, tid, 1100 * pp + start, 1000, ranked)
          .slice("backward-compute", 0, tid, 4200 - 2100 * pp + start, 2000, ranked)
          .slice(pp == 0 ? "forward-send" : "forward-recv", 0, tid + apart, 1000 + start, 100,
                 given)
          .slice(pp == 0 ? "backward-recv" : "backward-send", 0, tid + apart, 4100 + start, 100,
                 given);
    }
  return events;
}

/// Every send begins where an op of its recorder ends, and every receive ends where one begins.
void expect_messages_beside_ops(const traces::ObservedTrace& trace) {
  int messages = 0;
  for (const traces::ObservedOp& message : trace.ops) {
    if (!is_message(message.op.kind)) continue;
    ++messages;
    const bool is_sent = is_send(message.op.kind);
    EXPECT_TRUE(std::any_of(
        trace.ops.begin(), trace.ops.end(),
        [&](const traces::ObservedOp& observed) {
          return is_compute(observed.op.kind) && observed.recorder == message.recorder &&
                 (is_sent ? observed.end == message.start : observed.start == message.end);
        }))
        << to_string(message.op) << " at " << message.start;
  }
  EXPECT_EQ(messages, 8);
}

// The threads of messages run no compute op by which they could be told apart.
TEST(TensorPeers, HaveTheMessagesBesideTheirOps) {
  for (const int apart : {0, 5})
    for (const bool has_rank : {false, true}) {
      SCOPED_TRACE(text(apart) + (has_rank ? " with ranks" : ""));
      for (const int late : {5, 300})
        expect_messages_beside_ops(
            traces::parse_trace({"t.json", run_with_messages(late, apart, has_rank).list()}));
      const traces::AssembledSteps steps = read(run_with_messages(300, apart, has_rank));
      expect_two_replicas(steps);
      EXPECT_EQ(compute_makespan(steps.steps.at(1).timeline), 6'200'000);
      EXPECT_TRUE(steps.remarks.faults.empty()) << steps.remarks.faults.front();
    }
}

// Two stages of a rank run at the same time on two threads.
TEST(TensorPeers, AreNotThreadsWithAStageEach) {
  Events events;
  for (int pp = 0; pp < 2; ++pp)
    for (const int chunk : {0, 1})
      events.slice(text(2 * chunk + pp) + "F0", 0, 10 * pp + chunk, 1000 * pp, 1000,
                   R"("step":3,"pp_rank":)" + text(pp));
  const std::string list = events.list();
  EXPECT_EQ(traces::parse_trace({"t.json", list}).recorders.size(), 2u);
}

// The files state no number of a peer, and their pipelines are told from replicas by their times.
TEST(TensorPeers, InFilesThatStateNoneRunInStep) {
  const auto read_unstated = [](int late) {
    traces::ObservedTrace trace;
    for (int pp = 0; pp < 2; ++pp)
      for (int peer = 0; peer < 2; ++peer) {
        Events events;
        add_rank(events, {0, 0, R"(,"pp_rank":)" + text(pp)}, pp, late * peer);
        const std::string list = events.list();
        traces::append(trace, traces::parse_trace({text(2 * pp + peer) + ".json", list}));
      }
    return traces::assemble_steps(std::move(trace));
  };
  expect_one_pipeline(read_unstated(5));
  EXPECT_EQ(note_before(read_unstated(5), kAssumed), "ranks of the same args.pp_rank");
  expect_two_replicas(read_unstated(300));
}

/// Forwards of two peers in files of their own, each in a pipeline of two ranks. The second peer is
/// ahead by 1 s and by these further times (us).
traces::AssembledSteps read_forwards(const std::vector<int>& later, int duration) {
  traces::ObservedTrace trace;
  for (int pp = 0; pp < 2; ++pp)
    for (int peer = 0; peer < 2; ++peer) {
      Events events;
      for (std::size_t at = 0; at < later.size(); ++at) {
        const int number = static_cast<int>(at);
        events.slice("forward-compute", 0, 0,
                     duration * (number + pp) + peer * (1'000'000 + later[at]), duration,
                     R"("step":3,"mb_id":)" + text(number) + R"(,"pp_rank":)" + text(pp) +
                         R"(,"tp_rank":)" + text(peer));
      }
      const std::string list = events.list();
      traces::append(trace, traces::parse_trace({text(2 * pp + peer) + ".json", list}));
    }
  return traces::assemble_steps(std::move(trace));
}

bool says_apart(const traces::AssembledSteps& read) {
  for (const std::string& doubt : read.remarks.doubts)
    if (doubt.find("do not run their ops at the same time") != doubt.npos) return true;
  return false;
}

// The first op alone does not show the difference of the clocks. 12 us are over 1 % of 500 us.
TEST(TensorPeers, InFilesMayDifferByMicroseconds) {
  EXPECT_FALSE(says_apart(read_forwards({12, 0, -3, 3, 0}, 500)));
  EXPECT_FALSE(says_apart(read_forwards({18, 0, 0, 0, -18}, 500)));
  EXPECT_TRUE(says_apart(read_forwards({60, 0, 0, 0, 0}, 500)));
  EXPECT_TRUE(says_apart(read_forwards({12, 0, 0, 0, 0}, 100)));  // a tenth of an op
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
  EXPECT_EQ(error_of([&] {
              traces::append(trace, traces::parse_trace({"b.json", list}));
            }),
            "b.json has the ops that are in a.json already, at the same times; give every trace "
            "once");
}

}  // namespace
}  // namespace bubblescope::tests
