// The messages of Nsight Systems' recordings: what ops waited for, and which ranks are missing.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <variant>
#include <vector>

#include "sim/analysis/causes.h"
#include "sim/ir/error.h"
#include "tests/support/nsys_writer.h"
#include "tests/support/temporary_folder.h"
#include "traces/measured/assemble_steps.h"

namespace bubblescope::tests {
namespace {

constexpr Nanos kMessage = 700'000;  ///< as long as half an op

RecordedStep record(std::int32_t microbatches = 8) {
  return record_step("1f1b", {.ranks = 4, .microbatches = microbatches}, uneven_cost(kMessage));
}

class NsysMessages : public TemporaryFolder {
 protected:
  bool write(const std::string& name, const NsysEvents& events) {
    return write_nsys(path(name), events, NsysSchema::k2025);
  }

  traces::AssembledSteps assemble(const std::vector<std::string>& names) {
    traces::ObservedTrace trace;
    for (const std::string& name : names) traces::append(trace, traces::read_trace(path(name)));
    return traces::assemble_steps(trace);
  }
};

/// The time that the step loses by gaps or messages, by cause.
Nanos saved_by(const std::vector<traces::MeasuredStep>& steps, CauseKind kind, bool is_unseen) {
  std::vector<ReplicatedStep> observed;
  for (const traces::MeasuredStep& step : steps)
    observed.push_back({{step.program, step.timeline}});
  const CauseReport report = find_causes(observed);
  EXPECT_TRUE(report.is_known);
  Nanos saved = 0;
  for (const Cause& cause : report.causes)
    if (cause.kind() == kind && std::holds_alternative<UnseenMessages>(cause.facts) == is_unseen)
      saved += cause.saves;
  return saved;
}

std::string first_fault(const traces::AssembledSteps& read) {
  return read.remarks.faults.empty() ? "" : read.remarks.faults.front();
}

// Three messages of the critical path of 1F1B lead down the pipeline and three back, at least; the
// recording has nothing else that delays an op.
TEST_F(NsysMessages, WaitingForMessagesIsNoLateLaunch) {
  const RecordedStep step = record();
  struct Case {
    const char* name;
    NsysJob job;
  };
  for (const Case& one :
       {Case{"calls alone", {NsysNames::kMegatron}},
        Case{"functions and calls", {NsysNames::kFunctionsAndMessages}},
        Case{"functions", {.names = NsysNames::kFunctions, .unnamed_messages = true}},
        Case{"ops", {.names = NsysNames::kOps, .unnamed_messages = true}},
        Case{"passes", {NsysNames::kPasses}}, Case{"engine", {NsysNames::kDeepSpeed}}}) {
    SCOPED_TRACE(one.name);
    NsysJob job = one.job;
    job.posts_early = true;
    if (!write("job.sqlite", record_nsys(step, job))) GTEST_SKIP() << "there is no libsqlite3";
    const traces::AssembledSteps read = assemble({"job.sqlite"});
    EXPECT_EQ(first_fault(read), "");
    EXPECT_GT(saved_by(read.steps, CauseKind::kCommunication, false), 6 * kMessage);
    EXPECT_LT(saved_by(read.steps, CauseKind::kLaunch, false), kMessage / 10);
  }
}

// Without any message nothing shows why an op starts late.
TEST_F(NsysMessages, GapsBeforeMessagesThatWereNotRecordedAreNoLateLaunches) {
  const RecordedStep step = record();
  if (!write("job.sqlite", record_nsys(step, {NsysNames::kFunctions})))
    GTEST_SKIP() << "there is no libsqlite3";
  const std::vector<traces::MeasuredStep> steps = assemble({"job.sqlite"}).steps;
  EXPECT_GT(saved_by(steps, CauseKind::kCommunication, true), 6 * kMessage);
  EXPECT_EQ(saved_by(steps, CauseKind::kLaunch, false), 0);
}

// An inner rank receives before its first forward and sends after its last backward.
TEST_F(NsysMessages, RanksThatAreMissingAtTheEndsAreFaults) {
  const RecordedStep step = record();
  for (const NsysJob& job :
       {NsysJob{NsysNames::kMegatron}, NsysJob{NsysNames::kFunctionsAndMessages},
        NsysJob{NsysNames::kPasses}, NsysJob{NsysNames::kDeepSpeed},
        NsysJob{.names = NsysNames::kFunctions, .unnamed_messages = true},
        NsysJob{.names = NsysNames::kZeroBubble, .unnamed_messages = true}}) {
    SCOPED_TRACE(static_cast<int>(job.names));
    const NsysEvents events = record_nsys(step, job);
    for (std::int32_t rank = 0; rank < 4; ++rank)
      if (!write(fmt::format("rank{}.sqlite", rank), of_rank(events, rank)))
        GTEST_SKIP() << "there is no libsqlite3";
    const traces::AssembledSteps whole =
        assemble({"rank0.sqlite", "rank1.sqlite", "rank2.sqlite", "rank3.sqlite"});
    EXPECT_EQ(first_fault(whole), "");
    const traces::AssembledSteps last = assemble({"rank1.sqlite", "rank2.sqlite", "rank3.sqlite"});
    EXPECT_NE(first_fault(last).find("receives from the rank before it"), std::string::npos)
        << first_fault(last);
    const traces::AssembledSteps first = assemble({"rank0.sqlite", "rank1.sqlite", "rank2.sqlite"});
    EXPECT_NE(first_fault(first).find("further ranks are missing"), std::string::npos)
        << first_fault(first);
  }
}

}  // namespace
}  // namespace bubblescope::tests
