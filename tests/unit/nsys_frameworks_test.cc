// Exports of Nsight Systems as several frameworks and releases write them, read back and compared
// with what was recorded.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/ir/error.h"
#include "sim/model/schedule_def.h"
#include "tests/support/error_text.h"
#include "tests/support/nsys_writer.h"
#include "tests/support/temporary_folder.h"
#include "traces/measured/assemble_steps.h"
#include "traces/measured/name_rules.h"

namespace bubblescope::tests {
namespace {

constexpr std::int64_t kEpoch = 1'750'000'000'000'000'000;

class NsysFrameworks : public TemporaryFolder {
 protected:
  std::string write(const std::string& name, const NsysEvents& events,
                    NsysSchema schema = NsysSchema::k2023, std::int64_t epoch = 0) {
    if (!write_nsys(path(name), events, schema, epoch)) return {};
    return path(name);
  }
};

/// 1 to 2 ms per op, and messages far below that.
RecordedStep record(const std::string& schedule, std::int32_t chunks = 1) {
  return record_step(schedule, {.ranks = 4, .chunks = chunks, .microbatches = 8},
                     uneven_cost(10'000));
}

/// Every compute op of every step has the time that was recorded.
void expect_truth(const std::vector<traces::MeasuredStep>& steps, const RecordedStep& truth,
                  std::size_t count) {
  ASSERT_EQ(steps.size(), count);
  for (const traces::MeasuredStep& step : steps) {
    ASSERT_EQ(step.schedule->order, truth.schedule->order);
    std::vector<std::vector<std::pair<Nanos, Nanos>>> expected(4);
    std::vector<std::vector<std::pair<Nanos, Nanos>>> found(4);
    const auto collect = [](const Program& program, const Timeline& timeline, auto& ranks) {
      for (InstructionId id = 0; id < program.size(); ++id)
        if (is_compute(program.instructions[id].op.kind))
          ranks[program.instructions[id].rank].emplace_back(timeline.start[id], timeline.end[id]);
    };
    collect(truth.program, truth.timeline, expected);
    collect(step.program, step.timeline, found);
    EXPECT_EQ(found, expected);
  }
}

std::vector<traces::MeasuredStep> read(const std::vector<std::string>& paths) {
  traces::ObservedTrace trace;
  for (const std::string& path : paths) traces::append(trace, traces::read_trace(path));
  const traces::AssembledSteps read = traces::assemble_steps(trace);
  for (const std::string& doubt : read.remarks.doubts) ADD_FAILURE() << doubt;
  for (const std::string& fault : read.remarks.faults) ADD_FAILURE() << fault;
  return read.steps;
}

TEST_F(NsysFrameworks, OpsAreExactInEveryReleaseAndUnderEveryName) {
  const RecordedStep step = record("1f1b");
  for (const NsysSchema schema : {NsysSchema::k2021, NsysSchema::k2023, NsysSchema::k2025})
    for (const NsysNames names :
         {NsysNames::kOps, NsysNames::kEmitNvtx, NsysNames::kZeroBubble, NsysNames::kMegatron,
          NsysNames::kFunctions, NsysNames::kDeepSpeed, NsysNames::kPasses}) {
      SCOPED_TRACE(static_cast<int>(schema) * 10 + static_cast<int>(names));
      const std::string file = write("job.sqlite", record_nsys(step, {names}), schema, kEpoch);
      if (file.empty()) GTEST_SKIP() << "there is no libsqlite3";
      expect_truth(read({file}), step, 3);
    }
}

TEST_F(NsysFrameworks, WeightGradientsMakeTheForksBackwardsInputGradients) {
  const RecordedStep step = record("zb-h1");
  const std::string file = write("job.sqlite", record_nsys(step, {NsysNames::kZeroBubble, 2}));
  if (file.empty()) GTEST_SKIP() << "there is no libsqlite3";
  expect_truth(read({file}), step, 2);
}

TEST_F(NsysFrameworks, ChunksInAVAreNotTakenForInterleavedOnes) {
  for (const char* schedule : {"zb-v", "interleaved"}) {
    SCOPED_TRACE(schedule);
    const RecordedStep step = record(schedule, 2);
    const std::string file = write("job.sqlite", record_nsys(step, {NsysNames::kZeroBubble, 2}));
    if (file.empty()) GTEST_SKIP() << "there is no libsqlite3";
    expect_truth(read({file}), step, 2);
  }
}

TEST_F(NsysFrameworks, FilesOfSingleRanksAreJoinedInAnyOrder) {
  const RecordedStep step = record("1f1b");
  for (const NsysNames names : {NsysNames::kOps, NsysNames::kMegatron}) {
    const NsysEvents events = record_nsys(step, {names});
    std::vector<std::string> files;
    for (const std::int32_t rank : {2, 0, 3, 1})
      files.push_back(write("rank" + std::to_string(9 - rank) + ".sqlite", of_rank(events, rank),
                            NsysSchema::k2025, kEpoch));
    if (files[0].empty()) GTEST_SKIP() << "there is no libsqlite3";
    expect_truth(read(files), step, 3);
  }
}

/// The message of the refusal, or what makes the report unreliable; empty where neither is said.
std::string objection(const std::vector<std::string>& paths) {
  try {
    traces::ObservedTrace trace;
    for (const std::string& path : paths) traces::append(trace, traces::read_trace(path));
    const traces::Remarks remarks = traces::assemble_steps(trace).remarks;
    std::string said;
    for (const std::string& text : remarks.faults) said += text + "\n";
    for (const std::string& text : remarks.doubts) said += text + "\n";
    return said;
  } catch (const Error& error) {
    return error.what();
  }
}

TEST_F(NsysFrameworks, ChunksFollowFromTheOrderOfTheInterleavedSchedule) {
  for (const std::int32_t chunks : {2, 3})
    for (const NsysNames names : {NsysNames::kInterleaved, NsysNames::kOverlapped}) {
      SCOPED_TRACE(chunks * 10 + static_cast<int>(names));
      const RecordedStep step = record("interleaved", chunks);
      const std::string file = write("job.sqlite", record_nsys(step, {names}));
      if (file.empty()) GTEST_SKIP() << "there is no libsqlite3";
      expect_truth(read({file}), step, 3);
    }
}

// With as many micro-batches as ranks all forwards run first, whatever the number of chunks. Two
// ranks of four run as many forwards before their first backward as no pipeline of two ranks does.
TEST_F(NsysFrameworks, ChunksThatTheOrderLeavesOpenAreRefused) {
  const RecordedStep step = record("interleaved", 2);
  NsysEvents events = record_nsys(step, {NsysNames::kInterleaved});
  const NsysEvents last = of_rank(events, 3);
  std::erase_if(events.ranges, [](const NsysEvents::Range& range) {
    return range.thread != nsys_process(0) + 17;
  });
  events.ranges.insert(events.ranges.end(), last.ranges.begin(), last.ranges.end());
  const std::string file = write("two.sqlite", events);
  if (file.empty()) GTEST_SKIP() << "there is no libsqlite3";
  EXPECT_NE(objection({file}).find("each should run two fewer"), std::string::npos)
      << objection({file});
  EXPECT_NE(objection({write("last.sqlite", last)}).find("several stages per rank"),
            std::string::npos);
  NsysEvents alone = record_nsys(step, {NsysNames::kInterleaved, 3, false});
  const std::string joined = objection({write("alone.sqlite", alone)});
  EXPECT_NE(joined.find("no launch within it shows where the forward ends"), std::string::npos)
      << joined;
}

// Two chunks in groups of eight micro-batches have the counts of three chunks in groups of four.
TEST_F(NsysFrameworks, GroupsOfAnotherSizeAreNotMisread) {
  ScheduleRequest request;
  request.shape.ranks = 4;
  request.shape.chunks = 2;
  request.shape.microbatches = 24;
  request.shape.group_size = 8;
  const RecordedStep step =
      record_step(build_schedule(find_schedule("interleaved"), request), uneven_cost(10'000));
  for (const NsysNames names : {NsysNames::kInterleaved, NsysNames::kOverlapped}) {
    const std::string file = write("job.sqlite", record_nsys(step, {names}));
    if (file.empty()) GTEST_SKIP() << "there is no libsqlite3";
    EXPECT_NE(objection({file}).find("before its input"), std::string::npos) << objection({file});
  }
}

TEST_F(NsysFrameworks, MissingRanksAreReported) {
  const RecordedStep step = record("1f1b");
  const NsysEvents events = record_nsys(step, {NsysNames::kMegatron});
  const auto objection_to = [&](std::int32_t left, std::int32_t right) {
    return objection(
        {write("a.sqlite", of_rank(events, left)), write("b.sqlite", of_rank(events, right))});
  };
  if (write("c.sqlite", events).empty()) GTEST_SKIP() << "there is no libsqlite3";
  EXPECT_NE(objection_to(0, 1).find("further ranks are missing"), std::string::npos)
      << objection_to(0, 1);
  EXPECT_NE(objection_to(2, 3).find("receives from the rank before it"), std::string::npos)
      << objection_to(2, 3);
}

TEST_F(NsysFrameworks, UnnumberedOpsOfOneRankAreRefused) {
  const RecordedStep step = record("1f1b");
  const NsysEvents events = record_nsys(step, {NsysNames::kMegatron});
  const std::string file = write("last.sqlite", of_rank(events, 3));
  if (file.empty()) GTEST_SKIP() << "there is no libsqlite3";
  EXPECT_NE(objection({file}).find("only if all ranks are given"), std::string::npos);
}

TEST_F(NsysFrameworks, MessagesOfSeveralStagesPerRankAreRefused) {
  NsysEvents events;
  const std::int64_t thread = nsys_process(0) + 1;
  events.ranges = {{thread, 0, 10, "megatron.core.p2p_communication.recv_forward"},
                   {thread, 20, 30, "megatron.core.p2p_communication.send_forward_recv_forward"}};
  const std::string file = write("vpp.sqlite", events);
  if (file.empty()) GTEST_SKIP() << "there is no libsqlite3";
  EXPECT_NE(objection({file}).find("several stages per rank"), std::string::npos);
}

TEST_F(NsysFrameworks, DeepSpeedsBackwardsWithoutRangesAreRefused) {
  // Its engine names forwards on every stage, but backwards on the last one only.
  const RecordedStep step = record("1f1b");
  NsysEvents events = record_nsys(step, {NsysNames::kFunctions});
  for (NsysEvents::Range& range : events.ranges) {
    const bool forward = range.name.ends_with("forward_step");
    if (forward) range.name = "DeepSpeedEngine.forward";
    if (range.name.ends_with("backward_step"))
      range.name = range.thread == nsys_process(3) + 17 ? "DeepSpeedEngine.backward" : "backward";
  }
  const std::string file = write("deepspeed.sqlite", events);
  if (file.empty()) GTEST_SKIP() << "there is no libsqlite3";
  EXPECT_NE(objection({file}).find("DeepSpeed names backwards on the last stage only"),
            std::string::npos)
      << objection({file});
}

// A run with ZeRO has ranges of DeepSpeed's functions, but none of its pipeline's instructions.
// Their words (forward, backward) are no reason to suggest a rule.
TEST_F(NsysFrameworks, DeepSpeedsFunctionsAloneAreRefusedWithTheHook) {
  NsysEvents events;
  const std::int64_t thread = nsys_process(0) + 1;
  events.ranges = {{thread, 0, 10, "DeepSpeedZeRoOffload.pre_sub_module_forward_function"},
                   {thread, 20, 30, "DeepSpeedZeRoOffload.pre_sub_module_forward_function"},
                   {thread, 40, 50, "DeepSpeedEngine.allreduce_gradients"},
                   {thread, 60, 70, "PartitionedParameterCoordinator.fetch_sub_module"}};
  const std::string file = write("zero.sqlite", events);
  if (file.empty()) GTEST_SKIP() << "there is no libsqlite3";
  const std::string said = objection({file});
  EXPECT_NE(said.find("DeepSpeed's own ranges, here "
                      "'DeepSpeedZeRoOffload.pre_sub_module_forw...', "),
            std::string::npos)
      << said;
  EXPECT_NE(said.find("state neither a stage nor a micro-batch"), std::string::npos) << said;
  EXPECT_NE(said.find("annotate_deepspeed() in tools/hooks/bubblescope_hooks.py"),
            std::string::npos)
      << said;
  EXPECT_EQ(said.find("\"match\""), std::string::npos) << said;
}

TEST_F(NsysFrameworks, RefusalsListNamesAndARuleThatFits) {
  const RecordedStep step = record("1f1b");
  NsysEvents events = record_nsys(step, {NsysNames::kOps});
  for (NsysEvents::Range& range : events.ranges) {
    if (!range.name.starts_with("PP:")) continue;
    const std::size_t kind = range.name.find_first_of("FB");
    range.name = (range.name[kind] == 'F' ? "fwd stage" : "bwd stage") +
                 range.name.substr(3, kind - 3) + " mb" + range.name.substr(kind + 1);
  }
  const std::string file = write("own_names.sqlite", events);
  if (file.empty()) GTEST_SKIP() << "there is no libsqlite3";
  const std::string said = objection({file});
  EXPECT_NE(said.find("(96 like it)"), std::string::npos) << said;
  const std::size_t rule = said.find("{\"format\"");
  ASSERT_NE(rule, std::string::npos) << said;
  // The suggested rules work as they are.
  const auto rule_of = [](const std::string& word, const std::string& kind) {
    return R"x({"match":")x" + word + R"x( stage(\\d+) mb(\\d+)","kind":")x" + kind +
           R"x(","stage":"$1","microbatch":"$2"})x";
  };
  const std::string forward = rule_of("fwd", "F");
  const std::string backward = rule_of("bwd", "B");
  EXPECT_TRUE(said.ends_with(forward + ", " + backward + "]}")) << said;
  const traces::NameRules rules = traces::NameRules::parse(
      R"({"format":"bubblescope-rules/1","rules":[)" + forward + "," + backward + "]}", "rules");
  expect_truth(traces::assemble_steps(traces::read_trace(file, &rules)).steps, step, 3);
}

/// A rule for steps.
constexpr const char* kEpochsAreSteps =
    R"({"format":"bubblescope-rules/1","rules":[{"match":"epoch .*","kind":"step"}]})";

/// Adds a step that surrounds no op to the process of the last range, and a range of an iteration.
NsysEvents with_step_behind_ops(NsysEvents events) {
  const NsysEvents::Range last = events.ranges.back();
  for (const char* name : {"epoch 1", "iteration 1"})
    events.ranges.push_back({last.thread, last.end + 1'000, last.end + 2'000, name});
  return events;
}

TEST_F(NsysFrameworks, OpsOutsideOfAllStepsAreRefused) {
  const NsysEvents events = of_rank(record_nsys(record("1f1b"), {NsysNames::kOps}), 0);
  const std::string file = write("outside.sqlite", with_step_behind_ops(events));
  if (file.empty()) GTEST_SKIP() << "there is no libsqlite3";
  const traces::NameRules rules = traces::NameRules::parse(kEpochsAreSteps, "rules");
  EXPECT_EQ(error_of([&] { traces::read_trace(file, &rules); }),
            file + ": none of its 48 ops lies in a step; correct the rule whose kind is 'step'");
}

TEST_F(NsysFrameworks, ARankOutsideOfItsStepIsSaidToBeMissing) {
  const NsysEvents events = record_nsys(record("1f1b"), {NsysNames::kOps});
  const std::string file = write("partly.sqlite", with_step_behind_ops(events));
  if (file.empty()) GTEST_SKIP() << "there is no libsqlite3";
  const traces::NameRules rules = traces::NameRules::parse(kEpochsAreSteps, "rules");
  const traces::ObservedTrace trace = traces::read_trace(file, &rules);
  EXPECT_EQ(trace.recorders.size(), 3u);
  for (const traces::ObservedActivity& activity : trace.activities)
    EXPECT_FALSE(activity.is_whole_step);
  ASSERT_EQ(trace.remarks.doubts.size(), 1u);
  EXPECT_TRUE(trace.remarks.doubts[0].ends_with(
      ": none of its 48 ops lies in a step: the ops of its rank are missing"));
}

}  // namespace
}  // namespace bubblescope::tests
