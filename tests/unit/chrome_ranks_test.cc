// Tests which process, thread or argument of a Chrome trace counts as a rank.
#include "traces/measured/chrome_ranks.h"

#include <gtest/gtest.h>

#include <string>
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

/// The first fault of a trace of the last two of four ranks, which are named after `word` as the
/// threads of a process, or as processes.
std::string fault_without_first_ranks(const std::string& word, bool as_threads) {
  Trace trace;
  for (int rank = 2; rank < 4; ++rank) {
    const std::string number = text(70 + rank);
    const std::string pid = as_threads ? "0" : number;
    trace.metadata(as_threads ? "thread_name" : "process_name", pid, number,
                   R"("name":")" + word + " " + text(rank) + "\"");
    trace.slice("Forward 0", pid, number, 10 * rank, 10)
        .slice("Backward 0", pid, number, 120 - 20 * rank, 20);
  }
  const traces::AssembledSteps read = trace.read();
  EXPECT_EQ(read.steps.at(0).program.ranks, 4);
  return read.remarks.faults.empty() ? "" : read.remarks.faults.front();
}

// Devices are ranks in this order, so that those before the first are missing.
TEST(ChromeRanks, ThatAreDevicesMissTheFirst) {
  const std::string missing = "there are traces of ranks 2, 3, but none of 0, 1";
  for (const bool as_threads : {true, false}) {
    const std::string fault = fault_without_first_ranks("GPU", as_threads);
    EXPECT_TRUE(fault.starts_with(missing + ", by the numbers of their devices (if")) << fault;
    EXPECT_TRUE(fault_without_first_ranks("rank", as_threads).starts_with(missing + "; the ops"));
  }
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

// Process 0 has two ranks; the threads of process 1 share the micro-batches of one.
TEST(ChromeRanks, AreThreadsInSomeProcessesAlone) {
  Trace trace;
  for (int rank = 0; rank < 3; ++rank)
    for (int microbatch = 0; microbatch < 2; ++microbatch) {
      const std::string pid = text(rank / 2);
      const std::string forward = text(rank < 2 ? rank : 5 + microbatch);
      const std::string backward = text(rank < 2 ? rank : 5);
      trace.slice("Forward " + text(microbatch), pid, forward, 10 * (rank + microbatch), 10)
          .slice("Backward " + text(microbatch), pid, backward, 80 - 20 * (rank - microbatch), 20);
    }
  for (int rank = 0; rank < 2; ++rank)
    trace.metadata("thread_name", "0", text(rank), R"("name":"GPU )" + text(rank) + "\"");
  const traces::AssembledSteps read = trace.read();
  EXPECT_EQ(read.steps.at(0).program.ranks, 3);
  ASSERT_EQ(read.remarks.doubts.size(), 1u);
  EXPECT_NE(read.remarks.doubts[0].find("parts of one rank in process 1, where"), std::string::npos)
      << read.remarks.doubts[0];
  EXPECT_NE(read.remarks.doubts[0].find("in this order: GPU 0, GPU 1, process 1"),
            std::string::npos)
      << read.remarks.doubts[0];
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

/// Two ranks on threads of one process, whose backwards all lie on a third.
Trace with_backwards_apart(bool name_stages) {
  Trace trace;
  for (int rank = 0; rank < 2; ++rank)
    for (int microbatch = 0; microbatch < 2; ++microbatch) {
      const std::string number = text(microbatch);
      const std::string stage = text(rank);
      trace
          .slice(name_stages ? stage + "F" + number : "Forward " + number, "0", stage,
                 10 * (rank + microbatch), 10)
          .slice(name_stages ? stage + "B" + number : "Backward " + number, "0", "9",
                 50 - 20 * rank + 20 * microbatch, 20);
    }
  return trace;
}

TEST(ChromeRanks, OfBackwardsOnOtherThreadsFollowFromTheirStages) {
  EXPECT_EQ(with_backwards_apart(true).read().steps.at(0).program.ranks, 2);
  const std::string refusal = with_backwards_apart(false).refusal();
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
      trace.slice("forward-compute", text(replica), tid, 10 * rank + 3 * replica, 10, arguments);
      trace.slice("backward-compute", text(replica), tid, 50 - 20 * rank + 3 * replica, 10,
                  arguments);
    }
  const traces::AssembledSteps read = trace.read();
  ASSERT_EQ(read.steps.size(), 2u);
  EXPECT_EQ(read.steps[1].replica, 1);
  EXPECT_EQ(read.steps[1].program.ranks, 2);
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
  const std::vector<std::string> faults = trace.read().remarks.faults;
  ASSERT_FALSE(faults.empty());
  EXPECT_NE(faults[0].find("as with several stages per rank"), std::string::npos) << faults[0];
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

// No rank has a negative number, such as a process may have.
TEST(ChromeRanks, ANegativeProcessIsNoRank) {
  Trace trace;
  trace.slice("forward", "-1", "0", 0, 10, R"("microbatch":0)");
  trace.slice("backward", "-1", "0", 40, 20, R"("microbatch":0)");
  trace.slice("forward", "0", "0", 10, 10, R"("microbatch":0)");
  trace.slice("backward", "0", "0", 20, 20, R"("microbatch":0)");
  EXPECT_EQ(trace.read().steps.at(0).schedule->order.size(), 2u);
}

}  // namespace
}  // namespace bubblescope::tests
