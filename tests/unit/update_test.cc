// The end of a step: reductions, the norm, optimizer steps. F = 1, B = 2 (I = W = 1) unless stated.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <variant>

#include "sim/analysis/analyze.h"
#include "sim/engine/simulate.h"
#include "sim/ir/error.h"
#include "sim/ir/lower.h"
#include "sim/model/schedule_def.h"
#include "tests/support/as_written.h"
#include "tests/support/error_text.h"
#include "traces/timelines/timeline_file.h"

namespace bubblescope::tests {
namespace {

constexpr Nanos kStep = 5;
constexpr Nanos kNorm = 2;
constexpr Nanos kReduce = 10;

struct Ended {
  Schedule schedule;
  Program program;
  Timeline timeline;
  BubbleReport report;

  /// The span of the n-th instruction of this text on a rank.
  std::pair<Nanos, Nanos> span(std::int32_t rank, const std::string& text) const {
    for (InstructionId id = 0; id < program.size(); ++id) {
      const Instruction& instruction = program.instructions[id];
      if (instruction.rank == rank && instruction.role == Role::kWork &&
          to_string(instruction.op) == text)
        return {timeline.start[id], timeline.end[id]};
    }
    ADD_FAILURE() << "rank " << rank << " has no " << text;
    return {};
  }
  Nanos idle(std::int32_t rank, IdleCause cause) const {
    return report.ranks[static_cast<std::size_t>(rank)]
        .idle_by_cause[static_cast<std::size_t>(cause)];
  }
};

ScheduleRequest make_request(std::int32_t ranks, std::int32_t microbatches,
                             std::int32_t chunks = 1) {
  ScheduleRequest request;
  request.shape = {ranks, chunks, microbatches, 1, {}};
  request.cost.forward = request.cost.input_grad = request.cost.weight_grad = 1;
  request.cost.update = {kStep, kReduce, 0};
  request.cost.norm = kNorm;
  request.cost.per = UniformCost::Per::kChunk;
  return request;
}

Ended end_step(const Schedule& schedule, const UniformCost& cost, const LowerOptions& options) {
  Ended ended{schedule, std::get<Program>(lower(schedule, options)), {}, {}};
  ended.timeline = simulate(ended.program, spread(cost, schedule));
  ended.report = analyze(schedule, ended.program, ended.timeline);
  return ended;
}

Ended end_step(const std::string& name, const ScheduleRequest& request, UpdateOptions update) {
  LowerOptions options;
  options.update = update;
  return end_step(build_schedule(find_schedule(name), request), request.cost, options);
}

TEST(Optimizer, WaitsBehindABarrierForTheLastGradientOfAll) {
  // 1F1B: the last gradient is rank 0's at 3 (m+p-1) = 33; rank 3's own is ready at 33 - 3 * 2.
  const Ended ended = end_step("1f1b", make_request(4, 8), {OptimizerMode::kBarrier});
  for (std::int32_t rank = 0; rank < 4; ++rank)
    EXPECT_EQ(ended.span(rank, std::to_string(rank) + "OPT"),
              std::pair(33 + kNorm, 33 + kNorm + kStep));
  EXPECT_EQ(ended.report.makespan, 40);
  EXPECT_EQ(ended.idle(0, IdleCause::kSync), kNorm);
  EXPECT_EQ(ended.idle(3, IdleCause::kSync), 6 + kNorm);
  EXPECT_EQ(ended.idle(3, IdleCause::kDrain), 0);
}

TEST(Optimizer, StepsWithItsOwnGradientsIfNothingElseIsAwaited) {
  const Ended ended = end_step("1f1b", make_request(4, 8), {OptimizerMode::kLocal});
  for (std::int32_t rank = 0; rank < 4; ++rank)
    EXPECT_EQ(ended.span(rank, std::to_string(rank) + "OPT").first, 33 - 2 * rank);
  EXPECT_EQ(ended.report.makespan, 33 + kStep);
  EXPECT_EQ(ended.idle(3, IdleCause::kSync), 0);
  EXPECT_EQ(ended.report.ranks[3].busy_by_kind[static_cast<std::size_t>(BusyKind::kOptimizer)],
            kStep);
}

TEST(Optimizer, KeepsTheParallelogramUnderPostValidation) {
  // ZB-H2, F = I = W: rank r works without a bubble from r to r + 3m. The partial norm comes from
  // the previous rank, which was ready one unit earlier, so that no rank waits; the barrier's norm
  // is ready when the last rank is.
  const Ended ended = end_step("zb-h2", make_request(4, 8), {OptimizerMode::kPostValidation});
  for (std::int32_t rank = 0; rank < 4; ++rank)
    EXPECT_EQ(ended.span(rank, std::to_string(rank) + "OPT").first, 24 + rank);
  EXPECT_EQ(ended.report.max_span, 24 + kStep);
  EXPECT_EQ(ended.report.bubble->span_rate, 0);
  const Ended barrier = end_step("zb-h2", make_request(4, 8), {OptimizerMode::kBarrier});
  EXPECT_EQ(barrier.report.max_span, 27 + kNorm + kStep);
}

TEST(Optimizer, SendsPartialNormsFromRankToRankUnderPostValidation) {
  // In 1F1B the first rank is ready last, when the step would end; the partial norm takes a message
  // to each next rank.
  ScheduleRequest request = make_request(4, 8);
  request.cost.message = 1;
  const Ended ended = end_step("1f1b", request, {OptimizerMode::kPostValidation});
  const Nanos first = ended.span(0, "0OPT").first;
  EXPECT_EQ(first, *find_schedule("1f1b").claims(request).makespan);
  for (std::int32_t rank = 1; rank < 4; ++rank)
    EXPECT_EQ(ended.span(rank, std::to_string(rank) + "OPT").first, first + rank);
}

TEST(Optimizer, WaitsForTheLastBlockingSend) {
  // Host-rendezvous: 1SEND_B0 blocks rank 1 for the message's 3, from F + 3 + F + B = 7 on.
  ScheduleRequest request = make_request(2, 1);
  request.cost.message = 3;
  LowerOptions options;
  options.mode = P2pMode::kHostRendezvous;
  options.update = {OptimizerMode::kLocal};
  const Ended ended =
      end_step(build_schedule(find_schedule("gpipe"), request), request.cost, options);
  EXPECT_EQ(ended.span(1, "1OPT").first, 10);
}

TEST(Optimizer, RefusesForwardOnlyAndAsynchronousSchedules) {
  EXPECT_EQ(
      error_of([&] { end_step("forward-only", make_request(2, 2), {OptimizerMode::kLocal}); }),
      "forward-only produces no gradients; leave `optimizer` and `grad_reduction` out");
  EXPECT_EQ(error_of([&] { end_step("pipedream", make_request(2, 2), {OptimizerMode::kBarrier}); }),
            "pipedream updates its weights without flushes, separately on each rank; ask for "
            "`optimizer` local, and no serial reduction");
}

TEST(Optimizer, CountsInThePeriodOfUpdatesPerBatch) {
  // PipeDream-2BW with p = 4 updates once per 4 micro-batches: (4 (F + B) + OPT) / 4 = 3 + 1.
  ScheduleRequest request = make_request(4, 8);
  request.cost.update.optimizer = 4;
  for (const std::int32_t microbatches : {8, 12, 40}) {
    request.shape.microbatches = microbatches;
    EXPECT_EQ(end_step("pipedream-2bw", request, {OptimizerMode::kLocal}).report.period, 4)
        << microbatches;
  }
}

TEST(Optimizer, StepsWithinAsynchronousTraining) {
  // Every backward ends with an update: the period of PipeDream is F + B + OPT.
  const Ended ended = end_step("pipedream", make_request(4, 40), {OptimizerMode::kLocal});
  EXPECT_EQ(ended.report.period, 3 + kStep);
  std::string order;
  for (InstructionId id = 0; id < ended.program.size(); ++id)
    if (ended.program.instructions[id].lane == 3 && order.size() < 39)
      order += to_string(ended.program.instructions[id].op) + ' ';
  EXPECT_EQ(order, "3F0 3B0 3OPT 3F1 3B1 3OPT 3F2 3B2 3OPT ");
}

TEST(Optimizer, WaitsForTheReplicasOfItsStage) {
  // Two ranks share stage 0 and update together: each reduction starts on both when both have run
  // their backward.
  ScheduleRequest request = make_request(3, 12);
  request.replicas = {2, 1};
  const Ended ended = end_step("pipedream", request, {OptimizerMode::kLocal});
  EXPECT_EQ(ended.span(0, "0REDUCE_GRAD"), ended.span(1, "0REDUCE_GRAD"));
  EXPECT_GE(ended.span(0, "0REDUCE_GRAD").first,
            std::max(ended.span(0, "0B0").second, ended.span(1, "0B1").second));
  EXPECT_GE(ended.span(0, "0OPT").first, ended.span(0, "0REDUCE_GRAD").second);
}

TEST(GradReduction, IsHiddenBehindTheOtherChunksBackwards) {
  // Looped BFS, p = 4, v = 2, m = 8: T = 3 (2 * 8 + 3) = 57, and rank 0 is the last. Its chunk 1 is
  // complete 8 backwards of chunk 0 earlier: 16 units, enough to hide one reduction of 10.
  const ScheduleRequest request = make_request(4, 8, 2);
  const Ended overlap = end_step("bfs", request, {OptimizerMode::kNone, GradReduction::kOverlap});
  EXPECT_EQ(overlap.report.makespan, 57 + kReduce);
  EXPECT_EQ(overlap.span(0, "4REDUCE_GRAD").first, 57 - 16);
  EXPECT_EQ(overlap.idle(0, IdleCause::kSync), kReduce);
  const Ended serial = end_step("bfs", request, {OptimizerMode::kNone, GradReduction::kSerial});
  EXPECT_EQ(serial.report.makespan, 57 + 2 * kReduce);
  EXPECT_EQ(serial.span(0, "4REDUCE_GRAD").first, 57);
}

TEST(GradReduction, ComesBeforeNormAndStep) {
  // 1F1B: rank 0 has its gradients at 33.
  const Ended ended =
      end_step("1f1b", make_request(4, 8), {OptimizerMode::kBarrier, GradReduction::kOverlap});
  EXPECT_EQ(ended.span(0, "0REDUCE_GRAD"), std::pair(Nanos{33}, 33 + kReduce));
  EXPECT_EQ(ended.report.makespan, 33 + kReduce + kNorm + kStep);
}

TEST(GradReduction, SynchronizesTheTwoReplicasOfABidirectionalStage) {
  // Chimera holds stage s on rank s and its replica p+s on rank p-1-s; even without
  // --grad-reduction they are summed before they step.
  const Ended ended = end_step("chimera", make_request(4, 8), {OptimizerMode::kLocal});
  for (std::int32_t stage = 0; stage < 4; ++stage) {
    const std::string replica = std::to_string(4 + stage);
    const auto span = ended.span(stage, std::to_string(stage) + "REDUCE_GRAD");
    EXPECT_EQ(span, ended.span(3 - stage, replica + "REDUCE_GRAD"));
    EXPECT_EQ(span.second - span.first, kReduce);
    EXPECT_GE(ended.span(stage, std::to_string(stage) + "OPT").first, span.second);
    EXPECT_GE(ended.span(3 - stage, replica + "OPT").first, span.second);
  }
}

TEST(UpdatedTimeline, SurvivesItsFile) {
  const Ended ended =
      end_step("chimera", make_request(4, 4), {OptimizerMode::kBarrier, GradReduction::kOverlap});
  const traces::TimelineFile file = traces::parse_timeline(
      traces::write_timeline(require_valid(ended.schedule), ended.program, ended.timeline),
      "t.json");
  EXPECT_EQ(file.timeline.end, ended.timeline.end);
  ASSERT_EQ(file.program.size(), ended.program.size());
  for (InstructionId id = 0; id < file.program.size(); ++id) {
    EXPECT_EQ(file.program.instructions[id].op, ended.program.instructions[id].op);
    EXPECT_EQ(file.program.instructions[id].role, ended.program.instructions[id].role);
  }
}

}  // namespace
}  // namespace bubblescope::tests
