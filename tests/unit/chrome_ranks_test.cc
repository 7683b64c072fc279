// Tests which process, thread or argument of a Chrome trace counts as a rank.
#include "traces/measured/chrome_ranks.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "sim/ir/error.h"
#include "traces/files/trace_format.h"
#include "traces/measured/assemble_steps.h"

namespace bubblescope::tests {
namespace {

/// Events of a Chrome trace; pids and tids are json.
class Trace {
 public:
  Trace& slice(const std::string& name, const std::string& pid, const std::string& tid, int start,
               int duration, const std::string& arguments = "") {
    return add(R"({"ph":"X","name":")" + name + R"(","ts":)" + std::to_string(start) +
               R"(,"dur":)" + std::to_string(duration) + place(pid, tid, arguments));
  }
  Trace& metadata(const std::string& name, const std::string& pid, const std::string& tid,
                  const std::string& arguments) {
    return add(R"({"ph":"M","name":")" + name + "\"" + place(pid, tid, arguments));
  }

  traces::ObservedTrace parse() const {
    return traces::parse_trace({"t.json", "[" + events_ + "]"});
  }
  traces::AssembledSteps read() const { return traces::assemble_steps(parse()); }
  std::string refusal() const {
    try {
      read();
    } catch (const Error& error) {
      return error.what();
    }
    return "read";
  }

 private:
  static std::string place(const std::string& pid, const std::string& tid,
                           const std::string& arguments) {
    return R"(,"pid":)" + pid + R"(,"tid":)" + tid + R"(,"args":{)" + arguments + "}}";
  }
  Trace& add(const std::string& event) {
    events_ += (events_.empty() ? "" : ",") + event;
    return *this;
  }
  std::string events_;
};

std::string text(int number) { return std::to_string(number); }

/// One micro-batch on ranks that wait for each other: F takes 10 us, B 20 us. `pid` and `tid` tell
/// where a rank's ops lie.
template <class Pid, class Tid>
Trace run_in_turn(int ranks, bool name_stages, Pid pid, Tid tid) {
  Trace trace;
  const auto name = [&](int rank, const char* kind) {
    if (name_stages) return text(rank) + kind + "0";
    return std::string(*kind == 'F' ? "Forward 0" : "Backward 0");
  };
  for (int rank = 0; rank < ranks; ++rank) {
    trace.slice(name(rank, "F"), pid(rank), tid(rank), 10 * rank, 10);
    trace.slice(name(rank, "B"), pid(rank), tid(rank), 10 * ranks + 20 * (ranks - 1 - rank), 20);
  }
  return trace;
}

std::string zero(int) { return "0"; }

// Ops that never overlap do not make one rank of four threads: each is busy for 30 of 120 us.
TEST(ChromeRanks, AreThreadsWithTheForwardsOfOneProcess) {
  for (const bool name_stages : {true, false}) {
    const traces::AssembledSteps read = run_in_turn(4, name_stages, zero, text).read();
    ASSERT_EQ(read.steps.size(), 1u);
    EXPECT_EQ(read.steps[0].program.ranks, 4);
    ASSERT_EQ(read.remarks.doubts.size(), 1u);
    EXPECT_NE(read.remarks.doubts[0].find("lie on 4 threads"), std::string::npos)
        << read.remarks.doubts[0];
  }
}

TEST(ChromeRanks, AreInTheOrderOfTheNumbersInThreadNames) {
  Trace trace = run_in_turn(4, false, zero, [](int rank) { return text(70 - rank); });
  for (int rank = 0; rank < 4; ++rank)
    trace.metadata("thread_name", "0", text(70 - rank), R"("name":"GPU )" + text(rank) + "\"");
  const traces::AssembledSteps read = trace.read();
  EXPECT_EQ(read.steps.at(0).program.ranks, 4);
  EXPECT_TRUE(read.remarks.doubts.empty()) << read.remarks.doubts[0];
  ASSERT_EQ(read.remarks.notes.size(), 1u);
  EXPECT_NE(read.remarks.notes[0].find("GPU 0, GPU 1, GPU 2, GPU 3"), std::string::npos)
      << read.remarks.notes[0];
}

/// A process with two forwards; its backwards lie on a thread of their own, as autograd's do.
Trace with_autograd(const std::string& forward_thread) {
  Trace trace;
  for (int rank = 0; rank < 2; ++rank) {
    const std::string pid = text(rank);
    trace.slice(text(rank) + "F0", pid, "1", 10 * rank, 10);
    trace.slice(text(rank) + "F1", pid, forward_thread, 10 * rank + 10, 10);
    trace.slice(text(rank) + "B0", pid, "2", 50 - 20 * rank, 10);
    trace.slice(text(rank) + "B1", pid, "2", 70 - 20 * rank, 10);
  }
  return trace;
}

TEST(ChromeRanks, AreProcessesIfTheirForwardsLieOnOneThread) {
  EXPECT_EQ(with_autograd("1").read().steps.at(0).program.ranks, 2);
}

TEST(ChromeRanks, AreProcessesIfTheirThreadsShareMicrobatches) {
  EXPECT_EQ(with_autograd("3").read().steps.at(0).program.ranks, 2);
}

TEST(ChromeRanks, AreProcessesIfTheirThreadsRunAChunkEach) {
  Trace trace;
  for (int rank = 0; rank < 2; ++rank)
    for (int chunk = 0; chunk < 2; ++chunk)
      trace.slice("forward-compute", text(rank), text(chunk), 20 * chunk + 10 * rank, 10,
                  R"("step":1,"mb_id":0,"model_chunk":)" + text(chunk));
  const traces::AssembledSteps read = trace.read();
  EXPECT_EQ(read.steps.at(0).program.ranks, 2);
  EXPECT_EQ(read.steps.at(0).schedule->stages(), 4);
}

TEST(ChromeRanks, AreUnclearIfSeveralProcessesHaveSeveralThreads) {
  const auto pid = [](int rank) { return text(rank / 2); };
  const std::string refusal = run_in_turn(4, true, pid, text).refusal();
  EXPECT_NE(refusal.find("whether each is a rank or the process is"), std::string::npos) << refusal;
  EXPECT_NE(refusal.find("args.pp_rank"), std::string::npos) << refusal;
}

TEST(ChromeRanks, AreUnclearIfThreadsRunOneAfterAnother) {
  Trace trace;
  for (int thread = 0; thread < 2; ++thread)
    trace.slice("Forward 0", "0", text(thread), 100 * thread, 10)
        .slice("Backward 0", "0", text(thread), 100 * thread + 20, 10);
  EXPECT_NE(trace.refusal().find("nothing shows whether"), std::string::npos) << trace.refusal();
}

TEST(ChromeRanks, OfBackwardsOnOtherThreadsFollowFromTheirStages) {
  const auto split = [](bool name_stages) {
    Trace trace;
    for (int rank = 0; rank < 2; ++rank) {
      for (int microbatch = 0; microbatch < 2; ++microbatch) {
        const auto name = [&](const char* cell, const std::string& word) {
          return (name_stages ? text(rank) + cell : word + " ") + text(microbatch);
        };
        trace.slice(name("F", "Forward"), "0", text(rank), 10 * (rank + microbatch), 10);
        trace.slice(name("B", "Backward"), "0", "9", 50 - 20 * rank + 20 * microbatch, 20);
      }
    }
    return trace;
  };
  EXPECT_EQ(split(true).read().steps.at(0).program.ranks, 2);
  const std::string refusal = split(false).refusal();
  EXPECT_NE(refusal.find("'Backward 0' lies on thread 9, which runs no forward"), std::string::npos)
      << refusal;
}

// The threads of veScale: messages have their own, with the rank in the name.
TEST(ChromeRanks, OfOtherThreadsFollowFromTheirNames) {
  Trace trace = run_in_turn(2, true, zero, text);
  trace.slice("0SEND_F0", "0", "7", 10, 1).slice("1RECV_F0", "0", "8", 9, 2);
  for (int rank = 0; rank < 2; ++rank)
    trace.metadata("thread_name", "0", text(rank), R"("name":"rank[)" + text(rank) + "] main\"")
        .metadata("thread_name", "0", text(7 + rank), R"("name":"rank[)" + text(rank) + "] pp\"");
  EXPECT_EQ(trace.parse().recorders.size(), 2u);
}

// The best evidence: two data-parallel replicas, each a process with its ranks on threads.
TEST(ChromeRanks, AreTheirArguments) {
  Trace trace;
  for (int replica = 0; replica < 2; ++replica)
    for (int rank = 0; rank < 2; ++rank) {
      const std::string arguments =
          R"("step":3,"rank":)" + text(2 * replica + rank) + R"(,"pp":)" + text(rank);
      const std::string tid = text(10 * (2 * replica + rank));
      trace.slice("forward-compute", text(replica), tid, 10 * rank, 10, arguments);
      trace.slice("backward-compute", text(replica), tid, 50 - 20 * rank, 10, arguments);
    }
  const traces::AssembledSteps read = trace.read();
  ASSERT_EQ(read.steps.size(), 2u);
  EXPECT_EQ(read.steps[1].replica, 1);
  EXPECT_EQ(read.steps[1].program.ranks, 2);
}

/// Two replicas of two ranks that run one micro-batch, the second replica 1 us later. `place` gives
/// the pid and the tid, and `arguments` those of an op besides its step and micro-batch.
template <class Place, class Arguments>
Trace run_replicas(Place place, Arguments arguments) {
  Trace trace;
  for (int replica = 0; replica < 2; ++replica)
    for (int rank = 0; rank < 2; ++rank) {
      const auto [pid, tid] = place(replica, rank);
      const std::string given = R"("step":3,"mb_id":0,)" + arguments(replica, rank);
      trace.slice("forward-compute", pid, tid, 10 * rank + replica, 10, given)
          .slice("backward-compute", pid, tid, 50 - 20 * rank + replica, 20, given);
    }
  return trace;
}

/// Each replica is a step of its own, in which both ranks are busy for 30 of 70 us.
void expect_two_replicas(const traces::AssembledSteps& read) {
  ASSERT_EQ(read.steps.size(), 2u);
  for (int replica = 0; replica < 2; ++replica) {
    const traces::MeasuredStep& step = read.steps[static_cast<std::size_t>(replica)];
    EXPECT_EQ(step.replica, replica);
    EXPECT_EQ(step.program.ranks, 2);
    EXPECT_EQ(compute_makespan(step.timeline), 70'000);
  }
  EXPECT_TRUE(read.remarks.faults.empty()) << read.remarks.faults.front();
}

std::pair<std::string, std::string> on_threads(int replica, int rank) {
  return {"7", text(10 * replica + rank)};
}

// All four ranks are threads of one process, so that the arguments alone tell the replicas apart.
TEST(ChromeRanks, AreOfTheReplicaThatTheirArgumentsState) {
  for (const std::string key :
       {"dp", "dp_rank", "dp_id", "data_parallel_rank", "replica", "replica_id"}) {
    SCOPED_TRACE(key);
    const auto number = [&](int replica) { return "\"" + key + "\":" + text(replica); };
    expect_two_replicas(run_replicas(on_threads, [&](int replica, int rank) {
                          return number(replica) + R"(,"pp_rank":)" + text(rank);
                        }).read());
    expect_two_replicas(
        run_replicas(on_threads, [&](int replica, int) { return number(replica); }).read());
  }
}

// The ranks of a job count on through its replicas, or alternate between them.
TEST(ChromeRanks, ThatCountThroughAllReplicasArePlacesInEach) {
  const auto in_blocks = [](int replica, int rank) { return 2 * replica + rank; };
  const auto in_turn = [](int replica, int rank) { return 2 * rank + replica; };
  const auto read = [](auto number) {
    return run_replicas(on_threads,
                        [&](int replica, int rank) {
                          return R"("dp":)" + text(replica) + R"(,"rank":)" +
                                 text(number(replica, rank));
                        })
        .read();
  };
  expect_two_replicas(read(in_blocks));
  expect_two_replicas(read(in_turn));
  const auto as_processes = [](int replica, int rank) {
    return std::pair(text(30 + 20 * replica + 7 * rank * (replica + 1)), std::string("0"));
  };
  expect_two_replicas(run_replicas(as_processes, [](int replica, int) {
                        return R"("dp":)" + text(replica);
                      }).read());
}

// The stages of ops place their processes, of which each replica has others.
TEST(ChromeRanks, OfReplicasFollowFromTheirStages) {
  Trace trace;
  for (int replica = 0; replica < 2; ++replica)
    for (int rank = 0; rank < 2; ++rank)
      for (const bool is_forward : {true, false})
        trace.slice(text(rank) + (is_forward ? "F0" : "B0"), text(3 - 2 * replica - rank), "0",
                    (is_forward ? 10 * rank : 50 - 20 * rank) + replica, is_forward ? 10 : 20,
                    R"("dp_rank":)" + text(replica));
  expect_two_replicas(trace.read());
}

// Each file has one rank, of a process with the same number, and states its replica.
TEST(ChromeRanks, OfReplicasMayBeAFileEach) {
  traces::ObservedTrace trace;
  for (int replica = 0; replica < 2; ++replica)
    for (int rank = 0; rank < 2; ++rank) {
      const std::string arguments =
          R"("step":3,"mb_id":0,"dp_rank":)" + text(replica) + R"(,"pp_rank":)" + text(rank);
      Trace one;
      one.slice("forward-compute", "0", "0", 10 * rank + replica, 10, arguments)
          .slice("backward-compute", "0", "0", 50 - 20 * rank + replica, 20, arguments);
      traces::append(trace, one.parse());
    }
  expect_two_replicas(traces::assemble_steps(trace));
}

TEST(ChromeRanks, OfUnlikeReplicasAreRefused) {
  Trace trace;
  for (int rank = 0; rank < 5; ++rank)
    trace.slice("Forward 0", "0", text(rank), 10 * rank, 10,
                R"("rank":)" + text(rank) + R"(,"dp":)" + text(rank / 3));
  EXPECT_NE(trace.refusal().find("unlike ranks (3 of replica 0, 2 of replica 1)"),
            std::string::npos)
      << trace.refusal();
}

TEST(ChromeRanks, OfOpsWithoutAReplicaFollowFromTheirThread) {
  Trace trace;
  const std::string given = R"("step":3,"mb_id":0,"pp_rank":)";
  for (int replica = 0; replica < 2; ++replica)
    for (int rank = 0; rank < 2; ++rank) {
      const std::string tid = text(10 * replica + rank);
      trace
          .slice("forward-compute", "7", tid, 10 * rank + replica, 10,
                 given + text(rank) + R"(,"dp_rank":)" + text(replica))
          .slice("backward-compute", "7", tid, 50 - 20 * rank + replica, 20, given + text(rank));
    }
  expect_two_replicas(trace.read());
  trace.slice("backward-compute", "7", "99", 90, 10, given + "1");
  EXPECT_NE(trace.refusal().find("'backward-compute' does not, and nothing else says"),
            std::string::npos)
      << trace.refusal();
}

/// Ranks 0 to 2 in the processes 30, 20 and 10.
Trace reversed() {
  return run_in_turn(
      3, false, [](int rank) { return text(30 - 10 * rank); }, zero);
}

TEST(ChromeRanks, AreInTheOrderOfTheNumbersInProcessNames) {
  Trace trace = reversed();
  for (int rank = 0; rank < 3; ++rank)
    trace.metadata("process_name", text(30 - 10 * rank), "0",
                   R"("name":"Rank )" + text(rank) + "\"");
  EXPECT_EQ(trace.parse().recorders.at(0).rank, 0);
  EXPECT_EQ(trace.read().steps.at(0).program.ranks, 3);
}

TEST(ChromeRanks, AreInTheOrderOfProcessesInAViewer) {
  Trace trace = reversed();
  for (int rank = 0; rank < 3; ++rank)
    trace.metadata("process_sort_index", text(30 - 10 * rank), "0",
                   R"("sort_index":)" + text(5 + 7 * rank));
  const traces::ObservedTrace parsed = trace.parse();
  EXPECT_EQ(parsed.recorders.at(0).rank, 0);
  EXPECT_EQ(parsed.recorders.at(2).rank, 2);
  // By their numbers they would be in reverse, and stage 2 would begin first.
  EXPECT_EQ(reversed().parse().recorders.at(0).rank, 30);
}

TEST(ChromeRanks, WithoutNumbersMayRunSeveralChunks) {
  // Rank 0 runs 7 forwards before its first backward and rank 1 runs 5. One stage per rank needs no
  // more than 2 and 1.
  Trace trace;
  const auto add = [&](int rank, const std::string& order, int start) {
    for (const char kind : order) {
      trace.slice(kind == 'F' ? "forward-compute" : "backward-compute", text(rank), "0", start, 10,
                  R"("step":1)");
      start += 10;
    }
  };
  add(0, "FFFFFFFBFBBBBBBB", 0);
  add(1, "FFFFFBFBFBFBBBBB", 10);
  const traces::ObservedTrace parsed = trace.parse();
  ASSERT_EQ(parsed.remarks.faults.size(), 1u);
  EXPECT_NE(parsed.remarks.faults[0].find("as with several stages per rank"), std::string::npos)
      << parsed.remarks.faults[0];
}

// They may be replicas, or the ranks of two nodes.
TEST(ChromeRanks, ThreadsOfTwoProcessesNamedAfterTheSameRanksAreRefused) {
  Trace trace;
  for (const std::string pid : {"0", "1"})
    for (int rank = 0; rank < 2; ++rank) {
      trace.metadata("thread_name", pid, text(rank), R"("name":"rank )" + text(rank) + "\"");
      trace.slice("Forward 0", pid, text(rank), 10 * rank, 10);
    }
  EXPECT_NE(trace.refusal().find("are named after the same rank (rank 0 in process 0 and others)"),
            std::string::npos)
      << trace.refusal();
}

}  // namespace
}  // namespace bubblescope::tests
