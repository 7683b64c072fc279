// The time of interleaved pairs counts under the kind of the op whose part it is.
#include "sim/analysis/pair_times.h"

#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "sim/ir/op_kinds.h"
#include "sim/model/schedule_def.h"
#include "sim/predict/predict.h"
#include "tests/support/recorded_step.h"
#include "traces/costs/cost_file.h"
#include "traces/reports/path_text.h"
#include "traces/reports/report_json.h"
#include "traces/schedules/text_schedule.h"

namespace bubblescope::tests {
namespace {

using Json = nlohmann::json;

RecordedStep predict_with(const Schedule& schedule, const std::string& keys, Config config = {}) {
  config.costs =
      traces::parse_cost_file("{\"format\":\"bubblescope-costs/1\"," + keys + "}", "costs.json");
  Prediction step = predict(require_valid(schedule), config);
  return {std::move(step.schedule), std::move(step.program), std::move(step.timeline),
          std::move(step.report)};
}

Nanos busy_of(const RankReport& rank, BusyKind kind) {
  return rank.busy_by_kind[static_cast<std::size_t>(kind)];
}

// F alone takes 10 + 6 + 20 ms, B alone 30 + 8. In the pair the compute lane runs F.attn to 10,
// B.mlp to 40, F.mlp to 60, and waits for B.dispatch to 68: 30 ms of F, 38 of B. The pair's F ends
// at 60, where 30 ms of F and 30 of B are over.
constexpr const char* kParts =
    R"("forward":{"parts":[{"name":"attn","time":"10ms"},)"
    R"({"name":"dispatch","lane":"expert","time":"6ms"},{"name":"mlp","time":"20ms"}]},)"
    R"("backward":{"parts":[{"name":"mlp","time":"30ms"},)"
    R"({"name":"dispatch","lane":"expert","time":"8ms"}]},)"
    R"("overlapped_pair":{"order":["F.attn","F.dispatch","B.mlp","F.mlp","|","B.dispatch"]})";

RecordedStep one_pair(Config config = {}) {
  return predict_with(traces::parse_schedule_text("0F0 (0F1;0B0)OVERLAP_F_B 0B1", "pair"), kParts,
                      std::move(config));
}

// In series the two ops of a pair run one after the other, and save nothing: 0B0 begins when its
// gradient is there, long after 0F1, and takes its 6 ms. Rank 1 runs from 13 to 19, 1B1 until 25
// and 1B0 until 31; the gradient of micro-batch 0 is there at 41, 0B0 ends at 47 and 0B1 at 53.
TEST(PairTimes, SaveNothingInSeries) {
  const Schedule schedule =
      traces::parse_schedule_text("0F0 (0F1;0B0)OVERLAP_F_B 0B1 | 1F0 1F1 1B1 1B0", "pair");
  const std::string alone = R"("forward":3,"backward":6,"message":{"latency":10})";
  Config serial;
  serial.lower.overlap = Overlap::kSerial;
  const Nanos without = predict_with(schedule, alone, serial).report.makespan;
  EXPECT_EQ(predict_with(schedule, alone + R"(,"overlapped_pair":7)", serial).report.makespan,
            without);
  EXPECT_EQ(without, 53'000'000);
  const Schedule one_rank = traces::parse_schedule_text("0F0 (0F1;0B0)OVERLAP_F_B 0B1", "pair");
  const std::string pair = alone + R"(,"overlapped_pair":7)";
  EXPECT_EQ(predict_with(one_rank, pair).report.makespan, 16'000'000);
  EXPECT_EQ(predict_with(one_rank, pair, serial).report.makespan, 18'000'000);
}

TEST(PairTimes, CountUnderTheKindOfThePart) {
  const RecordedStep step = one_pair();
  EXPECT_EQ(step.report.makespan, 36'000'000 + 68'000'000 + 38'000'000);
  EXPECT_EQ(busy_of(step.report.ranks[0], BusyKind::kF), 36'000'000 + 30'000'000);
  EXPECT_EQ(busy_of(step.report.ranks[0], BusyKind::kB), 38'000'000 + 38'000'000);
}

TEST(PairTimes, DivideTheCriticalPath) {
  const RecordedStep step = one_pair();
  const Json json =
      Json::parse(traces::write_report_json(step.report, step.program, step.timeline, {}));
  EXPECT_EQ(json["critical_path"], Json::parse(R"([
    {"rank":0,"op":"0F0","start_ns":0,"end_ns":36000000},
    {"rank":0,"op":"0F1","start_ns":36000000,"end_ns":96000000,
     "by_kind_ns":{"F":30000000,"B":30000000}},
    {"rank":0,"op":"0B0","start_ns":96000000,"end_ns":104000000,
     "by_kind_ns":{"F":0,"B":8000000}},
    {"rank":0,"op":"0B1","start_ns":104000000,"end_ns":142000000}])"));
  const std::string text = traces::write_path_text(step.record(), 120);
  EXPECT_NE(text.find("F 66 ms"), text.npos) << text;
  EXPECT_NE(text.find("B 76 ms"), text.npos) << text;
}

// 1 % of 66 ms of F, of 76 ms of B.
TEST(PairTimes, DivideWhatTheStepDependsOn) {
  Config config;
  config.scenarios.sensitivity = true;
  const RecordedStep step = one_pair(config);
  EXPECT_EQ(step.report.sensitivity->by_kind[static_cast<std::size_t>(BusyKind::kF)], 660'000);
  EXPECT_EQ(step.report.sensitivity->by_kind[static_cast<std::size_t>(BusyKind::kB)], 760'000);
}

TEST(PairTimes, StretchWithASlowRank) {
  Config config;
  config.slow_ranks = {{0, 3}};
  const RecordedStep step = one_pair(config);
  EXPECT_EQ(busy_of(step.report.ranks[0], BusyKind::kF), 3 * 66'000'000);
  EXPECT_EQ(busy_of(step.report.ranks[0], BusyKind::kB), 3 * 76'000'000);
}

// One after the other, every op has its own time.
TEST(PairTimes, AreThoseOfTheOpsInSeries) {
  Config config;
  config.lower.overlap = Overlap::kSerial;
  const RecordedStep step = one_pair(config);
  EXPECT_EQ(busy_of(step.report.ranks[0], BusyKind::kF), 2 * 36'000'000);
  EXPECT_EQ(busy_of(step.report.ranks[0], BusyKind::kB), 2 * 38'000'000);
}

class RandomPartCosts {
 public:
  explicit RandomPartCosts(std::uint32_t seed) : random_(seed) {}

  /// Parts of every kind of op, with the names that orders know. No order has all parts of a
  /// backward in series, so its dispatch waits for its mlp alone.
  std::string keys() {
    const std::string layers = std::to_string(1 + pick(3));
    const auto op = [&](const char* kind, std::vector<const char*> names) {
      std::string parts;
      for (const char* const name : names)
        parts += (parts.empty() ? "" : ",") + part(name, pick(3) == 0 ? "expert" : "compute");
      return "\"" + std::string(kind) + "\":{\"layers\":" + layers + ",\"parts\":[" + parts + "]}";
    };
    const std::array<const char*, 3> orders{"dualpipe", "megatron", "braid"};
    return op("forward", {"attn", "mlp", "combine"}) + "," +
           op("backward", {"combine", "mlp", "mlp_w", "dispatch", "attn", "attn_w"}) + "," +
           op("input_grad", {"combine", "mlp", "dispatch", "attn"}) + "," +
           op("weight_grad", {"mlp_w", "attn_w"}) + ",\"overlapped_pair\":{\"order\":\"" +
           orders[pick(orders.size())] + "\"}," +
           R"("part_contention":[{"lane":"compute","beside":"expert","slowdown":1.3}])";
  }

  std::uint32_t pick(std::size_t choices) {
    return static_cast<std::uint32_t>(random_() % choices);
  }

 private:
  std::string part(const std::string& name, const std::string& lane) {
    const std::string after = name == "dispatch" ? R"(,"after":["mlp"])" : "";
    return "{\"name\":\"" + name + "\",\"lane\":\"" + lane + "\",\"time\":\"" +
           std::to_string(pick(6) == 0 ? 0 : pick(1'000'000)) + "ns\"" + after + "}";
  }

  std::mt19937 random_;
};

/// The time of F and of all in a run: the compute lane's spans, and what it waits for.
std::pair<Nanos, Nanos> count_plainly(const PartRun& run) {
  Nanos of_forward = 0;
  Nanos whole = 0;
  const auto add = [&](const PartUse& use, Nanos time) {
    whole += time;
    if (!use.of_backward) of_forward += time;
  };
  for (const PartUse& use : run.uses) add(use, use.exposed);
  for (const PartSpan& span : run.spans)
    if (run.uses[span.use].lane == kComputeLane) add(run.uses[span.use], span.end - span.start);
  return {of_forward, whole};
}

void expect_exact_sums(const RecordedStep& step) {
  std::vector<Nanos> forward(step.report.ranks.size(), 0);
  for (const PlacedRun& placed : step.report.parts->placed) {
    const PartRun& run = step.report.parts->runs[placed.run];
    const Instruction& first = step.program.instructions[placed.first];
    const auto [of_forward, whole] = count_plainly(run);
    EXPECT_EQ(whole, run.time);
    EXPECT_EQ(whole, step.timeline.end[placed.last] - step.timeline.start[placed.first]);
    if (first.op.kind == OpKind::kForward)
      forward[static_cast<std::size_t>(first.rank)] += of_forward;
  }
  for (std::size_t rank = 0; rank < forward.size(); ++rank) {
    const RankReport& row = step.report.ranks[rank];
    EXPECT_EQ(std::accumulate(row.busy_by_kind.begin(), row.busy_by_kind.end(), Nanos{0}),
              row.busy);
    EXPECT_EQ(busy_of(row, BusyKind::kF), forward[rank]) << "rank " << rank;
  }
  const PairTimes pairs(step.program, step.timeline, *step.report.parts);
  for (InstructionId id = 0; id < step.program.size(); ++id) {
    if (!pairs.covers(id)) continue;
    const auto [first, second] = pairs.divide(id);
    EXPECT_EQ(first.time + second.time, step.timeline.end[id] - step.timeline.start[id]);
    EXPECT_GE(first.time, 0);
    EXPECT_GE(second.time, 0);
  }
}

TEST(PairTimes, AddUpInEveryScheduleWithPairs) {
  for (const char* const name : {"dualpipe", "dualpipev", "interleaved"})
    for (std::uint32_t seed = 0; seed < 40; ++seed) {
      SCOPED_TRACE(std::string(name) + ", seed " + std::to_string(seed));
      RandomPartCosts random(seed);
      ScheduleRequest request;
      request.shape.ranks = 2 * static_cast<std::int32_t>(1 + random.pick(3));
      request.shape.chunks = std::string(name) == "dualpipe" ? 1 : 2;
      request.shape.microbatches = request.shape.ranks * 4;
      if (std::string(name) == "interleaved") request.moe_overlap = MoeOverlap::kPairs;
      const ValidSchedule schedule = build_schedule(find_schedule(name), request);
      EXPECT_TRUE(has_pairs(*schedule));
      Config config;
      config.lower.overlap = seed % 2 == 0 ? Overlap::kAtomic : Overlap::kFused;
      expect_exact_sums(predict_with(*schedule, random.keys(), config));
    }
}

}  // namespace
}  // namespace bubblescope::tests
