// Parts of ops in cost files: series, pairs and their orders, and what files may not say.
#include "sim/model/op_parts.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "sim/ir/error.h"
#include "sim/predict/predict.h"
#include "tests/support/error_text.h"
#include "tests/support/random_schedule.h"
#include "traces/costs/cost_file.h"
#include "traces/schedules/text_schedule.h"

namespace bubblescope::tests {
namespace {

CostTable costs_of(const std::string& keys) {
  return traces::parse_cost_file("{\"format\":\"bubblescope-costs/1\"," + keys + "}", "f.json");
}

Prediction predict_with(const Schedule& schedule, const std::string& keys,
                        Overlap overlap = Overlap::kAtomic) {
  Config config;
  config.lower.overlap = overlap;
  config.costs = costs_of(keys);
  return predict(require_valid(schedule), config);
}

/// A pair of a forward and a backward of one stage on one rank, with an op around it.
Schedule paired() { return traces::parse_schedule_text("0F0 (0F1;0B0)OVERLAP_F_B 0B1", "paired"); }

constexpr const char* kTwoLanes =
    R"("forward":{"parts":[{"name":"attn","time":"10ns"},)"
    R"({"name":"dispatch","lane":"expert","time":"6ns"},{"name":"mlp","time":"20ns"}]},)"
    R"("backward":{"parts":[{"name":"mlp","time":"30ns"},)"
    R"({"name":"dispatch","lane":"expert","time":"8ns"},{"name":"attn","time":"12ns"}]})";

/// The same parts as kTwoLanes, by their kinds.
constexpr const char* kByKind =
    R"("parts":{"forward":[{"name":"attn","lane":"compute","time":"10ns"},)"
    R"({"name":"dispatch","lane":"expert","time":"6ns"},{"name":"mlp","time":"20ns"}],)"
    R"("backward":{"layers":1,"parts":[{"name":"mlp","time":"30ns"},)"
    R"({"name":"dispatch","lane":"expert","time":"8ns"},{"name":"attn","time":"12ns"}]}})";

TEST(OpParts, MayBeGivenByKind) {
  const Prediction whole = predict_with(paired(), kTwoLanes);
  const std::string by_kind = kByKind;
  for (const std::string& keys :
       {by_kind, by_kind + ",\"forward\":\"36ns\"", "\"stages\":[{" + by_kind + "}]"}) {
    const Prediction same = predict_with(paired(), keys);
    EXPECT_EQ(same.timeline.end, whole.timeline.end) << keys;
  }
  EXPECT_TRUE(fails_with([&] { costs_of(by_kind + ",\"forward\":\"35ns\""); },
                         "/forward: is not the time of its parts, 36 ns"));
  EXPECT_TRUE(fails_with([&] { costs_of(by_kind + ",\"stages\":[{\"forward\":1}]"); },
                         "is also in the root of the file"));
  EXPECT_TRUE(fails_with([&] { costs_of("\"parts\":{\"backward\":[]},\"forward\":1"); },
                         "/parts/backward: has no parts"));
}

TEST(OpParts, InSeriesTakeAsLongAsTheWhole) {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    std::string list;
    Nanos whole = 0;
    const int layers = 1 + static_cast<int>(random() % 4);
    for (int part = 0; part < 6; ++part) {
      std::string times;
      for (int layer = 0; layer < layers; ++layer) {
        const auto time = static_cast<Nanos>(random() % 1'000'000);
        whole += time;
        times += (layer == 0 ? "\"" : ",\"") + std::to_string(time) + "ns\"";
      }
      list += (part == 0 ? "" : ",") + std::string("{\"name\":\"p") + std::to_string(part) +
              "\",\"lane\":\"" + std::string(kPartLanes[random() % kPartLanes.size()].name) +
              "\",\"time\":[" + times + "]}";
    }
    const CostTable table = costs_of("\"forward\":{\"layers\":" + std::to_string(layers) +
                                     ",\"parts\":[" + list + "]},\"backward\":1");
    EXPECT_EQ(table.stages[0].forward, whole);
    EXPECT_EQ(make_cost_model(table, paired()).stages[0].forward, whole);
  }
}

/// The time as parts in series, none of which is a multiple of the number of slices.
std::string in_series(Nanos time) {
  const auto part = [](const char* name, const char* lane, Nanos first, Nanos second) {
    return "{\"name\":\"" + std::string(name) + "\",\"lane\":\"" + lane + "\",\"time\":[\"" +
           std::to_string(first) + "ns\",\"" + std::to_string(second) + "ns\"]}";
  };
  return "{\"layers\":2,\"parts\":[" + part("attn", "compute", 7, time / 3) + "," +
         part("dispatch", "expert", 11, 13) + "," +
         part("mlp", "compute", 1, time - time / 3 - 7 - 11 - 13 - 1) + "]}";
}

// Parts in series are the op, also of a slice: every schedule takes the same time to the
// nanosecond.
TEST(OpParts, InSeriesChangeNothing) {
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    RandomTraits traits;
    traits.slices = seed % 3 == 1;
    traits.recompute = seed % 4 == 2;
    const Schedule schedule = random_schedule(seed, traits);
    std::string scalar;
    std::string parts;
    Nanos time = 1'000'003;
    for (const char* key : {"forward", "backward", "input_grad", "weight_grad", "recompute"}) {
      time += 377 * seed + 11;
      const std::string value = "\"" + std::to_string(time) + "ns\"";
      const std::string comma = scalar.empty() ? "" : ",";
      scalar += comma + "\"" + key + "\":" + value;
      parts += comma + "\"" + key + "\":" + in_series(time);
    }
    for (const Overlap overlap : {Overlap::kSerial, Overlap::kAtomic, Overlap::kFused}) {
      const Prediction expected = predict_with(schedule, scalar, overlap);
      const Prediction actual = predict_with(schedule, parts, overlap);
      EXPECT_EQ(actual.timeline.start, expected.timeline.start) << seed;
      EXPECT_EQ(actual.timeline.end, expected.timeline.end) << seed;
    }
  }
}

// Alone F takes 10 + 6 + 20 = 36 and B 30 + 8 + 12 = 50. In the pair B.mlp runs beside F.dispatch
// and F.mlp beside B.dispatch: 10 + 30 + 20 + 12 = 72, and F ends at 60.
TEST(OpParts, OfPairsInterleaveInTheGivenOrder) {
  const std::string order =
      R"(,"overlapped_pair":{"order":["F.attn","F.dispatch","B.mlp","B.dispatch","F.mlp","B.attn"]})";
  const Prediction step = predict_with(paired(), kTwoLanes + order);
  EXPECT_EQ(step.timing.durations, (std::vector<Nanos>{36, 60, 12, 50}));
  ASSERT_TRUE(step.report.parts);
  // Alone, each op waits for its dispatch; in the pair nothing is exposed.
  EXPECT_EQ(step.report.parts->exposed(0), 6 + 8);
  EXPECT_EQ(step.report.makespan, 36 + 72 + 50);
}

TEST(OpParts, OfSerialPairsRunOneAfterTheOther) {
  const std::string order = R"(,"overlapped_pair":{"order":"dualpipe"})";
  const Prediction step = predict_with(paired(), kTwoLanes + order, Overlap::kSerial);
  EXPECT_EQ(step.timing.durations, (std::vector<Nanos>{36, 36, 50, 50}));
  EXPECT_EQ(step.report.parts->exposed(0), 2 * (6 + 8));
}

// The window of the dispatches ends with F.mlp, 10 + 30 + 20; then B.attn runs alone.
TEST(OpParts, WaitAtBarriers) {
  const std::string order =
      R"(,"overlapped_pair":{"order":["F.attn","|","B.mlp","F.dispatch","|","F.mlp",)"
      R"("B.dispatch","|","B.attn"]})";
  EXPECT_EQ(predict_with(paired(), kTwoLanes + order).report.makespan, 36 + 72 + 50);
  const std::string slow =
      R"(,"overlapped_pair":{"order":["F.attn","F.dispatch","|","B.mlp","|","F.mlp",)"
      R"("B.dispatch","|","B.attn"]})";
  EXPECT_EQ(predict_with(paired(), kTwoLanes + slow).report.makespan, 36 + 78 + 50);
}

// Communication takes SMs: B.mlp needs 6 ns more while F.dispatch runs, F.mlp 8 ns more.
TEST(OpParts, ContendForTheDevice) {
  const std::string keys =
      R"(,"overlapped_pair":{"order":["F.attn","F.dispatch","B.mlp","B.dispatch","F.mlp","B.attn"]},)"
      R"("part_contention":[{"lane":"compute","beside":"expert","slowdown":2}])";
  const Prediction step = predict_with(paired(), kTwoLanes + keys);
  // 6 ns beside F.dispatch do 3 ns of B.mlp's work; 8 ns beside B.dispatch do 4 ns of F.mlp's.
  EXPECT_EQ(step.report.makespan, 36 + (72 + 3 + 4) + 50);
  EXPECT_EQ(step.report.parts->slowed(0), 3 + 4);
}

TEST(OpParts, EveryLaneOfTheTableCanBeUsed) {
  for (const PartLaneKind& lane : kPartLanes) {
    const CostTable table = costs_of(R"("forward":{"parts":[{"name":"a","lane":")" +
                                     std::string(lane.name) + R"(","time":"5ns"}]},"backward":1)");
    EXPECT_EQ(table.stages[0].forward, 5) << lane.name;
  }
}

/// A file whose forward has these parts.
std::string refusal_of(const std::string& forward, const std::string& more = "") {
  return error_of([&] { costs_of("\"forward\":" + forward + ",\"backward\":1" + more); });
}

TEST(OpParts, ThatMakeNoSenseAreRefused) {
  const auto parts = [](const std::string& list) { return "{\"parts\":[" + list + "]}"; };
  EXPECT_EQ(refusal_of(parts("")),
            "f.json: /forward: has no parts; list them, or give the time of the whole op");
  EXPECT_EQ(
      refusal_of(parts(R"({"name":"a","lane":"nic","time":1})")),
      "f.json: /forward/parts/0/lane: is not a lane; the lanes are compute, tensor, expert, copy, "
      "context, data, message");
  EXPECT_EQ(refusal_of(parts(R"({"name":"a","time":1,"after":["b"]},{"name":"b","time":1})")),
            "f.json: /forward/parts/0/after/0: names no part that this one can wait for");
  EXPECT_EQ(refusal_of(parts(R"({"name":"a","time":1,"after":["a"]})")),
            "f.json: /forward/parts/0/after/0: names no part that this one can wait for");
  EXPECT_EQ(refusal_of(parts(R"({"name":"a","time":1},{"name":"a","time":1})")),
            "f.json: /forward/parts/1/name: is the name of a part above; give each part one of its "
            "own");
  EXPECT_EQ(refusal_of(parts(R"({"name":"a,b","time":1})")),
            "f.json: /forward/parts/0/name: must have 1 to 40 letters, digits, '_' or '-'");
  EXPECT_EQ(refusal_of(R"({"layers":3,"parts":[{"name":"a","time":[1,2]}]})"),
            "f.json: /forward/parts/0/time: has 2 entries for 3 layers; give one per layer, or "
            "one time for all");
  EXPECT_EQ(refusal_of(R"({"layers":4096,"parts":[{"name":"a","time":1},{"name":"b","time":1}]})"),
            "f.json: /forward: has more than 4096 parts over its 4096 layers; fold layers into "
            "one, with the times of all");
  EXPECT_EQ(refusal_of(parts(R"({"name":"a","time":"900000s"},{"name":"b","time":"200000s"})")),
            "f.json: /forward: has parts that take longer than 11 days together; correct their "
            "times");
  EXPECT_TRUE(refusal_of(parts(R"({"name":"a","time":-1})"))
                  .starts_with("f.json: /forward/parts/0/time: "));
  EXPECT_EQ(refusal_of(R"({"layers":0,"parts":[{"name":"a","time":1}]})"),
            "f.json: /forward/layers: must be a whole number from 1 to 4096");
  EXPECT_EQ(error_of([] { costs_of(R"("forward":1,"backward":1,"evict":{"parts":[]})"); }),
            "f.json: /evict: is not an op that computes; only those have parts");
}

TEST(OpParts, GoOnlyWithWhatTheyExplain) {
  const std::string one = R"({"parts":[{"name":"a","time":1}]})";
  EXPECT_EQ(
      refusal_of(one, R"(,"part_contention":[{"lane":"compute","beside":"compute","slowdown":2}])"),
      "f.json: /part_contention/0: names one lane twice; a lane runs one part at a time");
  EXPECT_EQ(
      refusal_of(one, R"(,"part_contention":[{"lane":"compute","beside":"copy","slowdown":0.5}])"),
      "f.json: /part_contention/0/slowdown: must be from 1 to 10: how many times longer a part "
      "takes");
  const std::string slowdown = R"({"lane":"compute","beside":"copy","slowdown":2})";
  EXPECT_EQ(
      refusal_of(one, ",\"part_contention\":[" + slowdown + "," + slowdown + "]"),
      "f.json: /part_contention/1: has a slowdown above for the same lanes; remove one of them");
  EXPECT_EQ(
      refusal_of("1", R"(,"overlapped_pair":{"order":"dualpipe"})"),
      "f.json: /overlapped_pair: has an order of parts, but 'forward' has no parts; give them");
  EXPECT_EQ(refusal_of(one, R"(,"overlapped_pair":{"order":"duelpipe"})"),
            "f.json: /overlapped_pair/order: 'duelpipe' is not an order of parts; give dualpipe, "
            "megatron, braid, or a list of parts");
  EXPECT_EQ(refusal_of(one, R"(,"overlapped_pair":{"order":["F.a","F.a"]})"),
            "f.json: /overlapped_pair/order: has 'F.a' twice; a part runs once per layer");
  EXPECT_EQ(refusal_of(one, R"(,"recompute":{"per_microbatch":[[1,2]]})"),
            "f.json: has values that differ by micro-batch or slice, and parts of ops, which are "
            "the same for all; leave one of them out");
  EXPECT_EQ(refusal_of(one, R"(,"divisible":true)"),
            "f.json: /divisible: does not go with parts of ops; remove it, or give the times of "
            "whole ops instead of "
            "parts");
}

TEST(OpParts, OfHalvesDoNotMakeThoseOfWholeBackwards) {
  const std::string halves =
      R"("forward":1,"input_grad":{"parts":[{"name":"a","time":3}]},"weight_grad":3)";
  EXPECT_TRUE(fails_with([&] { predict_with(paired(), halves); },
                         "has whole backwards, whose parts are missing"));
}

// Stage 0 recomputes the given time beside the ops of stage 1, which recomputes all 36 ns of its F.
TEST(OpParts, OfOneEntryServeStagesThatRecomputeDifferently) {
  Schedule schedule = traces::parse_schedule_text("0F0 0R0 0B0\n1F0 1R0 1B0", "two");
  schedule.recompute_of_stage = {Recompute::kSelective, Recompute::kFull};
  const auto makespan = [&](const std::string& selective) {
    const std::string key = ",\"selective_recompute\":\"" + selective + "\"";
    return predict_with(schedule, kTwoLanes + key).report.makespan;
  };
  EXPECT_EQ(makespan("1ns"), 36 + 36 + 36 + 50 + 50);
  EXPECT_EQ(makespan("200ns"), 36 + 200 + 50);
}

TEST(OpParts, ThatAnOrderDoesNotFitAreRefusedForTheSchedule) {
  const auto refusal = [](const std::string& order) {
    return error_of([&] {
      predict_with(paired(),
                   kTwoLanes + std::string(",\"overlapped_pair\":{\"order\":") + order + "}");
    });
  };
  EXPECT_EQ(refusal(R"(["F.attn","F.dispatch","B.mlp","B.dispatch","F.mlp"])"),
            "f.json: overlapped_pair: the order of 0F1 and 0B0 lacks B.attn; add it");
  EXPECT_EQ(refusal(R"(["F.attn","F.dispatch","B.mlp","F.mlp"])"),
            "f.json: overlapped_pair: the order of 0F1 and 0B0 lacks B.attn, B.dispatch; add them");
  EXPECT_EQ(refusal(R"(["F.attn","F.dispatch","B.mlp","B.dispatch","F.mlp","B.attn","B.norm"])"),
            "f.json: overlapped_pair: the order of 0F1 and 0B0 has B.norm, but the backward has no "
            "part of this name; remove it");
  EXPECT_EQ(
      refusal(R"(["F.mlp","F.attn","F.dispatch","B.mlp","B.dispatch","B.attn"])"),
      "f.json: overlapped_pair: the order of 0F1 and 0B0 leaves parts waiting for each other "
      "(F.mlp of layer 0, F.dispatch of layer 0); list a part behind those that it waits for");
  const std::string unknown =
      R"("forward":{"parts":[{"name":"norm","time":1}]},"backward":{"parts":[{"name":"attn",)"
      R"("time":1}]},"overlapped_pair":{"order":"braid"})";
  EXPECT_EQ(error_of([&] { predict_with(paired(), unknown); }),
            "f.json: overlapped_pair: the order of 0F1 and 0B0 lacks F.norm; list the parts in "
            "an order of your own instead of 'braid'");
}

// Uneven stages: the time of a pair is that of its own two stages.
TEST(OpParts, OfPairsAreThoseOfBothStages) {
  const Schedule schedule =
      traces::parse_schedule_text("0F0 1F0 (0F1;1B0)OVERLAP_F_B 0B0 1F1 1B1 0B1", "two");
  const std::string keys =
      R"("forward":[{"parts":[{"name":"a","time":"10ns"},{"name":"x","lane":"expert","time":"5ns"}]},)"
      R"("3ns"],"backward":["7ns",{"parts":[{"name":"a","time":"20ns"}]}],)"
      R"("overlapped_pair":[{"order":["F.a","F.x","B.a"]},"30ns"])";
  EXPECT_EQ(predict_with(schedule, keys).timing.durations[2], 15);
  EXPECT_EQ(predict_with(schedule, keys).timing.durations[3], 15);
}

}  // namespace
}  // namespace bubblescope::tests
