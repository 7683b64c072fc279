// Lists in cost files: values per stage, micro-batch and slice, and what files may not say.
#include "sim/model/cost_lists.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "sim/analysis/memory_curve.h"
#include "sim/model/message_costs.h"
#include "sim/predict/predict.h"
#include "tests/support/error_text.h"
#include "traces/costs/cost_file.h"
#include "traces/costs/cost_file_writer.h"
#include "traces/costs/value_list.h"
#include "traces/schedules/text_schedule.h"

namespace bubblescope::tests {
namespace {

CostTable with(const std::string& keys) {
  return traces::parse_cost_file("{\"format\":\"bubblescope-costs/1\"," + keys + "}", "f.json");
}

/// Two stages on two ranks, two micro-batches.
const Schedule& two_by_two() {
  static const Schedule schedule =
      traces::parse_schedule_text("0F0 0F1 0B0 0B1 | 1F0 1B0 1F1 1B1", "two");
  return schedule;
}

/// One stage, two micro-batches of two slices.
const Schedule& sliced() {
  static const Schedule schedule =
      traces::parse_schedule_text("0F0.0 0F0.1 0B0.1 0B0.0 0F1.0 0F1.1 0B1.1 0B1.0", "sliced");
  return schedule;
}

Op op(OpKind kind, std::int32_t stage, std::int32_t microbatch, std::int16_t slice = 0) {
  return {stage, microbatch, slice, kind};
}

constexpr const char* kPerMicrobatch =
    R"("stages":[{"forward":{"per_microbatch":["1ns","2ns"]},"backward":"7ns"},)"
    R"({"forward":"5ns","backward":{"per_microbatch":["3ns","4ns"]}}])";

TEST(CostLists, WritesTimesPerMicrobatchForAllStages) {
  const std::string text =
      R"("forward":{"per_microbatch":[[["1ns","2ns"],["2ns","3ns"]],[["3ns","4ns"],["5ns","6ns"]]]},)"
      R"("backward":{"per_microbatch":[["5ns","6ns"],["7ns","8ns"]]},"message":{"latency":"5ns"})";
  const std::string written = traces::write_cost_file(with(text));
  EXPECT_EQ(nlohmann::ordered_json::parse(written).dump(),
            "{\"format\":\"bubblescope-costs/1\"," + text + "}");
  for (const char* const more : {R"(,"weight_bytes":4)", R"(,"load":{"per_slice":[[1,2],[1,2]]})"})
    EXPECT_TRUE(fails_with([&] { traces::write_cost_file(with(text + more)); }, "compute ops"))
        << more;
}

TEST(CostLists, GiveEveryMicrobatchItsTime) {
  const CostModel model = make_cost_model(with(kPerMicrobatch), two_by_two());
  EXPECT_EQ(model.stage_cost(forward(0, 0)).forward, 1);
  EXPECT_EQ(model.stage_cost(forward(0, 1)).forward, 2);
  EXPECT_EQ(model.stage_cost(forward(0, 1)).backward, 7);
  EXPECT_EQ(model.stage_cost(forward(1, 1)).forward, 5);
  EXPECT_EQ(model.stage_cost(forward(1, 0)).backward, 3);
  EXPECT_EQ(model.stage_cost(forward(1, 1)).backward, 4);
}

TEST(CostLists, HaveTheirMeanAsTheCostOfAStage) {
  const CostModel model = make_cost_model(
      with(R"("forward":1,"backward":2,"overlapped_pair":{"per_microbatch":[[2,3],[3,3]]})"),
      two_by_two());
  EXPECT_EQ(model.stages.at(0).overlapped_pair, 2'500'000);
  EXPECT_EQ(model.stages.at(1).overlapped_pair, 3'000'000);
}

// 0F0 ends at 1, 0F1 at 3; 1F0 1..6, 1B0 6..9, 1F1 9..14, 1B1 14..18; 0B0 9..16, 0B1 18..25.
TEST(CostLists, AreWhatTheSimulatorRuns) {
  Config config;
  config.costs = with(kPerMicrobatch);
  EXPECT_EQ(predict(require_valid(two_by_two()), config).report.makespan, 25);
}

TEST(CostLists, InTheRootHaveOneListPerStage) {
  const CostModel model = make_cost_model(
      with(
          R"("forward":{"per_microbatch":[["1ns","2ns"],["5ns","5ns"]]},"backward":["7ns","3ns"])"),
      two_by_two());
  EXPECT_EQ(model.stage_cost(forward(0, 1)).forward, 2);
  EXPECT_EQ(model.stage_cost(forward(1, 1)).forward, 5);
  EXPECT_EQ(model.stage_cost(forward(1, 0)).backward, 3);
}

TEST(CostLists, NumbersInTheRootAreThoseOfEveryStage) {
  const CostTable file = with(R"("forward":"4ns","backward":"6ns")");
  const CostModel model = make_cost_model(file, two_by_two());
  EXPECT_EQ(model.stage_cost(forward(1, 1)).forward, 4);
  EXPECT_EQ(model.stage_cost(forward(1, 1)).backward, 6);
}

TEST(CostLists, InTheRootCompleteTheObjectsOfStages) {
  const CostModel model =
      make_cost_model(with(R"("stages":[{"forward":"1ns"},{"forward":"2ns"}],)"
                           R"("backward":{"per_microbatch":[["7ns","8ns"],["3ns","4ns"]]})"),
                      two_by_two());
  EXPECT_EQ(model.stage_cost(forward(1, 0)).forward, 2);
  EXPECT_EQ(model.stage_cost(forward(1, 1)).backward, 4);
}

TEST(CostLists, GiveSlicesTheirOwnTimes) {
  const CostModel model =
      make_cost_model(with(R"("stages":[{"forward":{"per_slice":["4ns","3ns"]},)"
                           R"("backward":{"per_microbatch":[["9ns","8ns"],["7ns","6ns"]]}}])"),
                      sliced());
  EXPECT_EQ(model.stage_cost(op(OpKind::kForward, 0, 1, 0)).forward, 4);
  EXPECT_EQ(model.stage_cost(op(OpKind::kForward, 0, 1, 1)).forward, 3);
  EXPECT_EQ(model.stage_cost(op(OpKind::kForward, 0, 0, 1)).backward, 8);
  EXPECT_EQ(model.stage_cost(op(OpKind::kForward, 0, 1, 0)).backward, 7);
}

TEST(CostLists, OfWholeSequencesAreDividedAmongSlices) {
  const CostModel model = make_cost_model(
      with(R"("stages":[{"forward":{"per_microbatch":["5ns","8ns"]},"backward":"7ns"}])"),
      sliced());
  EXPECT_EQ(model.stage_cost(op(OpKind::kForward, 0, 0, 0)).forward, 3);
  EXPECT_EQ(model.stage_cost(op(OpKind::kForward, 0, 0, 1)).forward, 2);
  EXPECT_EQ(model.stage_cost(op(OpKind::kForward, 0, 1, 1)).forward, 4);
}

// Bytes x 8 / 8 Gb/s = bytes in nanoseconds, plus the latency of 2 ns.
TEST(CostLists, GiveMessagesTheSizeOfTheirMicrobatchInBothDirections) {
  const std::string stages = R"("forward":"1ns","backward":["1ns","1ns"],)";
  const CostModel model =
      make_cost_model(with(stages + R"("message":{"latency":"2ns","bandwidth_gbps":8,)"
                                    R"("bytes":{"per_microbatch":[[10,20],[0,0]]}})"),
                      two_by_two());
  EXPECT_EQ(model.messages(forward(0, 0)).forward, 12);
  EXPECT_EQ(model.messages(forward(0, 1)).forward, 22);
  EXPECT_EQ(model.messages(forward(1, 1)).backward, 22);
  EXPECT_EQ(model.messages(forward(1, 1)).backward_bytes, 20);
  EXPECT_EQ(model.messages(forward(1, 1)).forward, 0);  // the last stage sends no activation
}

TEST(CostLists, GiveMessagesOfAClusterTheirSize) {
  const CostTable file = with(R"("forward":"1ns","backward":["1ns","1ns"],)"
                              R"("message":{"bytes":{"per_microbatch":[[10,20],[0,0]]}},)"
                              R"("cluster":{"within_node":{"latency":"3ns","bandwidth_gbps":8}})");
  Config config;
  config.costs = file;
  const Prediction step = predict(require_valid(two_by_two()), config);
  for (InstructionId id = 0; id < step.program.size(); ++id) {
    const Instruction& instruction = step.program.instructions[id];
    if (!is_message(instruction)) continue;
    EXPECT_EQ(step.timing.durations[id], instruction.op.microbatch == 0 ? 13 : 23);
    EXPECT_GE(step.timeline.end[id] - step.timeline.start[id], step.timing.durations[id]);
  }
}

// Rank 0 holds both micro-batches at once, rank 1 one after the other.
TEST(CostLists, GiveMicrobatchesTheirBytes) {
  const CostTable file = with(R"("forward":"1ns","backward":"1ns",)"
                              R"("activation_bytes":{"saved":{"per_microbatch":[[10,30],[5,7]]}})");
  Config config;
  config.costs = file;
  const Prediction step = predict(require_valid(two_by_two()), config);
  EXPECT_EQ(step.report.ranks[0].peak.bytes, 40);
  EXPECT_EQ(step.report.ranks[1].peak.bytes, 7);
}

// 57 bytes are 29 and 28, which add up; 10 ns of I + W are 5 and 5, however F is written.
TEST(CostLists, OfOneValueAreDividedLikeThatValue) {
  constexpr const char* kRest =
      R"(,"input_grad":"5ns","weight_grad":"5ns","activation_bytes":{"saved":57}}])";
  for (const char* const forward :
       {R"("10ns")", R"({"per_slice":["5ns","5ns"]})", R"({"per_microbatch":["10ns","10ns"]})"}) {
    Config config;
    config.costs = with(std::string(R"("stages":[{"forward":)") + forward + kRest);
    const Prediction step = predict(require_valid(sliced()), config);
    EXPECT_EQ(step.report.ranks[0].peak.bytes, 57) << forward;
    for (InstructionId id = 0; id < step.program.size(); ++id)
      EXPECT_EQ(step.timing.durations[id], 5) << forward;
  }
}

TEST(CostLists, OfSlicesThatAreTooMuchTogetherAreRefused) {
  std::string slices = "1152921504606846976";
  for (int slice = 1; slice < 9; ++slice) slices += ",1152921504606846976";
  EXPECT_EQ(
      error_of([&] {
        with(R"("stages":[{"forward":1,"backward":1,"activation_bytes":{"saved":{"per_slice":[)" +
             slices + "]}}}]");
      }),
      "f.json: /stages/0/activation_bytes/saved: has slices of more than 2^60 bytes or 36 years "
      "together; correct their values");
}

// No flag gives chimera-halving its two halves.
TEST(CostLists, OfAnotherLengthNameNoFlag) {
  const CostTable file = with(R"("stages":[{"forward":{"per_slice":[1]},"backward":1}])");
  EXPECT_EQ(
      error_of([&] { make_cost_model(file, sliced()); }),
      "f.json: /stages/0/forward/per_slice: has 1 entry, one per slice, but sliced has 2 slices; "
      "give one entry for each");
}

TEST(CostLists, OfAnotherLengthThanTheScheduleAreRefused) {
  const CostTable file = with(R"("stages":[{"forward":{"per_microbatch":[1,2,3]},"backward":1},)"
                              R"({"forward":{"per_microbatch":[1,2,3]},"backward":1}])");
  EXPECT_EQ(error_of([&] { make_cost_model(file, two_by_two()); }),
            "f.json: /stages/0/forward/per_microbatch: has 3 entries, one per micro-batch, but two "
            "has 2 micro-batches; give one entry for each");
  const CostTable one = with(R"("forward":{"per_microbatch":[[1],[2]]},"backward":1)");
  EXPECT_EQ(error_of([&] { make_cost_model(one, two_by_two()); }),
            "f.json: /forward/per_microbatch/0: has 1 entry, one per micro-batch, but two has 2 "
            "micro-batches; give one entry for each");
}

// Values in the root have no /stages to look into.
TEST(CostLists, InTheRootAreRefusedWithTheirPlaces) {
  EXPECT_EQ(error_of([] { make_cost_model(with(R"("forward":[1,2,3])"), two_by_two()); }),
            "f.json: /forward: has 3 entries, but two has 2 stages (2 ranks x 1 chunk); give "
            "one entry per stage");
  EXPECT_EQ(error_of([] { make_cost_model(with(R"("forward":[1,2])"), two_by_two()); }),
            "f.json: lacks 'backward'; add it, or 'input_grad' and 'weight_grad'");
  EXPECT_EQ(error_of([] { with(R"("forward":[1,4],"backward":1,"overlapped_pair":[2,3])"); }),
            "f.json: /overlapped_pair/1: must be at least 'forward', which is a part of it");
  EXPECT_EQ(error_of([] {
              with(R"("stages":[{"backward":1},{"backward":1}],"forward":4,"overlapped_pair":3)");
            }),
            "f.json: /overlapped_pair: must be at least 'forward', which is a part of it");
  EXPECT_EQ(error_of([] { with(R"("stages":[{"forward":1}],"input_grad":1)"); }),
            "f.json: has one of 'input_grad' and 'weight_grad'; give both, or neither");
  EXPECT_EQ(error_of([] {
              with(R"("forward":1,"activation_bytes":)"
                   R"({"saved":[8,8],"released_by_input_grad":[8,9]})");
            }),
            "f.json: /activation_bytes/released_by_input_grad/1: must not exceed "
            "/activation_bytes/saved: nothing else can be released");
}

TEST(CostLists, OfReplicasAreRefusedWithTheirPlaces) {
  const std::string replicas =
      R"("replicas":[{"stages":[{"forward":1,"backward":1},{"forward":1,"backward":1}]},)"
      R"({"stages":[{"forward":1,"backward":1},{"forward":1}]}])";
  Config config;
  config.costs = with(R"("forward":[1,1],"backward":1,)" + replicas);
  EXPECT_EQ(error_of([&] { predict(require_valid(two_by_two()), config); }),
            "f.json: /replicas/1/stages/1: lacks 'backward'; add it, or 'input_grad' and "
            "'weight_grad'");
  EXPECT_EQ(error_of([&] { with(R"("forward":[1,1,1],)" + replicas); }),
            "f.json: /replicas/0/stages: must have as many entries as /forward");
  EXPECT_TRUE(fails_with([&] { with(R"("forward":1,)" + replicas); },
                         "/replicas/0/stages: has stages of its own, but the root gives the same"));
}

TEST(CostLists, OfDifferentLengthsAreRefusedWithBothPlaces) {
  EXPECT_EQ(error_of([] {
              with(R"("stages":[{"forward":{"per_microbatch":[1,2]},)"
                   R"("backward":{"per_microbatch":[1,2,3]}}])");
            }),
            "f.json: /stages/0/backward/per_microbatch: has 3 entries, but "
            "/stages/0/forward/per_microbatch has 2; give both one per micro-batch");
  EXPECT_EQ(error_of([] { with(R"("forward":[1,2],"backward":[1,2,3])"); }),
            "f.json: /backward: has 3 entries, but /forward has 2; give both one per stage");
  EXPECT_EQ(error_of([] { with(R"("forward":{"per_microbatch":[[[1,2],[1]]]},"backward":1)"); }),
            "f.json: /forward/per_microbatch/0/1: has 1 entry, but /forward/per_microbatch/0/0 "
            "has 2; give both one per slice");
}

TEST(CostLists, AreRefusedWhereTheyMeanNothing) {
  EXPECT_EQ(
      error_of([] { with(R"("stages":[{"forward":[1,2],"backward":1}])"); }),
      "f.json: /stages/0/forward: is a list; make it the 'per_microbatch' or 'per_slice' of an "
      "object");
  EXPECT_EQ(error_of([] { with(R"("forward":{"per_microbatch":[[1,[2]]]},"backward":1)"); }),
            "f.json: /forward/per_microbatch/0/1: is a list of slices where others are not; give "
            "lists for all or for none");
  EXPECT_EQ(error_of([] { with(R"("forward":{"per_stage":[1]},"backward":1)"); }),
            "f.json: /forward: unknown key 'per_stage'; did you mean 'per_slice'?");
  EXPECT_EQ(error_of([] { with(R"("stages":[{"forward":1}],"forward":1,"backward":1)"); }),
            "f.json: /stages/0/forward: is also in the root of the file, for all stages; remove "
            "one of them");
  EXPECT_TRUE(fails_with([] { with(R"("forward":[1,2],"backward":1,"message":{"bytes":[1,2]})"); },
                         "lacks 'bandwidth_gbps'"));
  EXPECT_TRUE(fails_with(
      [] {
        with(R"("stages":[{"forward":{"per_microbatch":[1]},"backward":1,)"
             R"("contended":{"forward":[2]}}])");
      },
      "/stages/0/contended: goes with values that all micro-batches share"));
}

TEST(CostLists, ReleaseAtMostWhatTheyHold) {
  const CostTable file = with(
      R"("forward":1,"backward":1,"activation_bytes":{"saved":{"per_microbatch":[[10,30],[5,7]]},)"
      R"("released_by_input_grad":{"per_microbatch":[[10,30],[5,8]]}})");
  EXPECT_EQ(error_of([&] { make_memory_model(file, two_by_two()); }),
            "f.json: /activation_bytes: released_by_input_grad of micro-batch 1 is 8 "
            "bytes, more than the 7 that it saves; correct one of them");
}

TEST(ValueList, ReadsWordsLinesAndJson) {
  const std::vector<std::int64_t> lengths{8192, 4096, 12};
  EXPECT_EQ(traces::parse_lengths("# tokens\n8192 4096\n12  # short\n", "l"), lengths);
  EXPECT_EQ(traces::parse_lengths("8192,4096,12", "l"), lengths);
  EXPECT_EQ(traces::parse_lengths(" [8192, 4096, 12]", "l"), lengths);
  const std::vector<Nanos> times{0, 1'500'000, 20};
  EXPECT_EQ(traces::parse_release_times("0 1.5\n20ns", "t"), times);
  EXPECT_EQ(traces::parse_release_times("[0, 1.5, \"20ns\"]", "t"), times);
}

TEST(ValueList, SaysWhereAValueIsWrong) {
  EXPECT_EQ(
      error_of([] { traces::parse_lengths("12\n  4k", "l.txt"); }),
      "l.txt:2:3: '4k' is not a number of tokens; write a whole number from 1 to 1099511627776");
  EXPECT_TRUE(fails_with([] { traces::parse_release_times("1 -2", "t.txt"); }, "t.txt:1:3: "));
  EXPECT_TRUE(fails_with([] { traces::parse_lengths("[12, 0]", "l.json"); }, "l.json: /1: "));
  EXPECT_EQ(error_of([] { traces::parse_lengths("# none\n", "l"); }),
            "l has no values; write one per micro-batch");
}

}  // namespace
}  // namespace bubblescope::tests
