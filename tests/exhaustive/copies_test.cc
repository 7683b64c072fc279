// Recomputed, evicted and offloaded schedules over all small shapes.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "sim/analysis/memory_curve.h"
#include "sim/engine/simulate.h"
#include "sim/ir/error.h"
#include "sim/ir/offload.h"
#include "sim/ir/recompute.h"
#include "sim/ir/validate.h"
#include "sim/model/schedule_def.h"
#include "tests/support/as_written.h"
#include "tests/support/copy_interpreter.h"
#include "tests/support/measured_schedule.h"

namespace bubblescope::tests {
namespace {

std::optional<Schedule> build(const std::string& name, std::int32_t ranks, std::int32_t chunks,
                              std::int32_t microbatches) {
  ScheduleRequest request;
  request.shape.ranks = ranks;
  request.shape.chunks = chunks;
  request.shape.microbatches = microbatches;
  try {
    return build_schedule(find_schedule(name), request);
  } catch (const Error&) {
    return {};
  }
}

/// Every registered schedule in a few shapes; searched ones in small shapes.
std::vector<Schedule> catalogue() {
  std::vector<Schedule> schedules;
  for (const ScheduleDef& def : Registry<ScheduleDef>::instance().all())
    for (const std::int32_t ranks : {1, 2, 4})
      for (const std::int32_t chunks : {1, 2})
        for (const std::int32_t microbatches : {1, 4, 9}) {
          if (def.reads_costs && ranks * microbatches > 8) continue;
          if (def.splits_output_layer) continue;  // nothing of them is offloaded
          auto schedule = build(def.name, ranks, chunks, microbatches);
          if (schedule && !schedule->forward_only) schedules.push_back(*std::move(schedule));
        }
  return schedules;
}

using Spans = std::map<std::string, OpTime>;

/// The spans of compute ops except R, by name; with `everything`, of copies too.
Spans spans_of(const Schedule& schedule, const UniformCost& cost, bool everything) {
  const Program program = lower_or_throw(schedule);
  const Timeline timeline = simulate(program, spread(cost, schedule));
  Spans spans;
  for (InstructionId id = 0; id < program.size(); ++id) {
    const OpKind kind = program.instructions[id].op.kind;
    const bool plain = is_compute(kind) && kind != OpKind::kRecompute;
    if (plain || (everything && occurs_in_order(kind)))
      spans[to_string(program.instructions[id].op)] = {timeline.start[id], timeline.end[id]};
  }
  return spans;
}

UniformCost uneven(Nanos copy, Nanos message) {
  UniformCost cost;
  cost.forward = 60;
  cost.input_grad = 90;
  cost.weight_grad = 30;
  cost.copy = copy;
  cost.message = message;
  return cost;
}

TEST(Moves, ThatTakeNoTimeChangeNoSchedulesTimes) {
  int compared = 0;
  for (const Schedule& schedule : catalogue()) {
    UniformCost cost = uneven(0, 7);
    cost.recompute = cost.selective_recompute = 0;
    const Spans plain = spans_of(schedule, cost, false);
    for (const Recompute recompute : {Recompute::kNone, Recompute::kSelective, Recompute::kFull}) {
      Schedule moved = with_recompute(schedule, {recompute});
      EXPECT_TRUE(validate(moved).empty()) << schedule.name;
      EXPECT_EQ(spans_of(moved, cost, false), plain) << schedule.name;
      const bool runs_alone =
          schedule.fused_forwards == 1;  // copies cannot be placed within fused forwards
      if (moved.offload_target_of_rank.empty() && runs_alone) moved = with_offload(moved, {});
      for (const Problem& problem : validate(moved)) ADD_FAILURE() << to_string(problem);
      EXPECT_EQ(spans_of(moved, cost, false), plain) << schedule.name;
      ++compared;
    }
  }
  EXPECT_GT(compared, 300);
}

bool has_pairs(const Schedule& schedule) {
  for (const RankOrder& ops : schedule.order)
    for (const Op& op : ops)
      if (op.pairing != Pairing::kAlone) return true;
  return false;
}

TEST(Moves, RunWhenTheRulesSay) {
  int compared = 0;
  for (const Schedule& schedule : catalogue()) {
    if (has_pairs(schedule) || schedule.pipelines > 1) continue;
    for (const std::int32_t beside : {1, 2})
      for (const Nanos copy : {20, 60, 200}) {
        const UniformCost cost = uneven(copy, 7);
        Schedule moved = with_recompute(schedule, {Recompute::kFull});
        if (moved.offload_target_of_rank.empty()) moved = with_offload(moved, {700'000, beside});
        EXPECT_EQ(spans_of(moved, cost, true), interpret_copies(moved, spread(cost, moved)))
            << schedule.name << " p=" << schedule.shape.ranks
            << " m=" << schedule.shape.microbatches << " copy=" << copy;
        ++compared;
      }
  }
  EXPECT_GT(compared, 300);
}

std::vector<Peak> peaks_of(const Schedule& schedule, const UniformCost& cost) {
  const Program program = lower_or_throw(schedule);
  return find_peaks(schedule, program, simulate(program, spread(cost, schedule)), {});
}

/// Whatever copies cost, no rank holds more than ceil((p+2)/2) micro-batches, its own and its
/// partner's; with at least as many micro-batches rank 0 holds that many.
TEST(Bpipe, BalancesMemory) {
  for (std::int32_t ranks = 2; ranks <= 10; ++ranks)
    for (const std::int32_t microbatches : {1, ranks, 2 * ranks, 3 * ranks + 1})
      for (const Nanos copy : {0, 30, 60, 150, 500})
        for (const Nanos message : {0, 25}) {
          const Schedule schedule = *build("bpipe", ranks, 1, microbatches);
          const std::vector<Peak> peaks = peaks_of(schedule, uneven(copy, message));
          const std::int32_t limit = (ranks + 3) / 2;
          for (std::size_t rank = 0; rank < peaks.size(); ++rank)
            EXPECT_LE(peaks[rank].chunks, limit)
                << "p=" << ranks << " m=" << microbatches << " rank " << rank << " copy=" << copy;
          EXPECT_EQ(peaks[0].chunks, std::min({limit, ranks, microbatches}));
        }
}

/// Copies up to the shorter of F and B hide beside the adjacent ops: 1F1B's time stays the same.
TEST(Bpipe, HidesCopiesThatAreNotLongerThanOps) {
  for (std::int32_t ranks = 2; ranks <= 8; ++ranks)
    for (std::int32_t microbatches = 1; microbatches <= 3 * ranks; ++microbatches)
      for (const Nanos forward : {40, 60, 150})
        for (const Nanos copy : {0, 20, 40, 60}) {
          UniformCost cost = uneven(copy, 0);
          cost.forward = forward;
          if (copy > std::min(forward, cost.full_backward())) continue;
          EXPECT_EQ(simulate_times(*build("bpipe", ranks, 1, microbatches), cost).makespan,
                    (microbatches + ranks - 1) * (forward + cost.full_backward()))
              << "p=" << ranks << " m=" << microbatches << " copy=" << copy << " F=" << forward;
        }
}

/// 1F1B's memory on rank 0 grows with p. With offloading, a rank holds only the newest micro-batch,
/// the one being evicted and the one being loaded, per op beside which copies run.
TEST(Offload, HoldsAFewMicrobatchesWhateverTheNumberOfRanks) {
  for (const std::int32_t ranks : {4, 8, 16}) {
    const Schedule schedule = with_offload(*build("1f1b", ranks, 1, 3 * ranks), {});
    const UniformCost cost = uneven(60, 0);
    for (const Peak& peak : peaks_of(schedule, cost)) EXPECT_LE(peak.chunks, 3);
    EXPECT_EQ(simulate_times(schedule, cost).makespan,
              simulate_times(*build("1f1b", ranks, 1, 3 * ranks), cost).makespan);
  }
}

/// PipeOffload's example: p = 4, m = 8, v = 2, groups of 4, and copies half as long as the compute
/// of a chunk: its peaks fall from 8, 7, 6, 5 chunks to 4, and the makespan stays 54.
TEST(Offload, ReachesThePeaksOfPipeOffload) {
  UniformCost cost;
  cost.forward = cost.input_grad = cost.weight_grad = 20;
  cost.copy = 30;
  const Schedule plain = *build("group-interleaved", 4, 2, 8);
  EXPECT_EQ(simulate_times(plain, cost).makespan, 540);
  EXPECT_EQ(walk_peaks(plain, {}), (std::vector<std::int64_t>{8, 7, 6, 5}));
  const Schedule offloaded = with_offload(plain, {kWhole, 3});
  EXPECT_EQ(simulate_times(offloaded, cost).makespan, 540);
  for (const Peak& peak : peaks_of(offloaded, cost)) EXPECT_LE(peak.chunks, 4);
}

/// Two ranks that share a link run their copies one after the other, separately for each direction.
/// The step is at least as long as with separate links.
TEST(Offload, NeverRunsTwoCopiesOfASharedLinkAtOnce) {
  int turns = 0;
  for (const char* name : {"gpipe", "1f1b", "zb-h2", "group-interleaved"})
    for (const std::int32_t sharing : {2, 3, 4}) {
      const Schedule schedule = with_offload(*build(name, 4, 1, 12), {});
      const UniformCost cost = uneven(70, 5);
      LowerOptions options;
      options.ranks_per_host_link = sharing;
      const Program program = std::get<Program>(lower(schedule, options));
      const Timeline timeline = simulate(program, spread(cost, schedule));
      std::map<std::pair<std::int32_t, OpKind>, std::vector<OpTime>> copies;
      for (InstructionId id = 0; id < program.size(); ++id)
        if (is_copy(program.instructions[id].op.kind))
          copies[{program.instructions[id].rank / sharing, program.instructions[id].op.kind}]
              .push_back({timeline.start[id], timeline.end[id]});
      for (auto& [link, spans] : copies) {
        std::sort(spans.begin(), spans.end(),
                  [](const OpTime& left, const OpTime& right) { return left.start < right.start; });
        for (std::size_t at = 1; at < spans.size(); ++at) {
          EXPECT_LE(spans[at - 1].end, spans[at].start) << name;
          ++turns;
        }
      }
      EXPECT_GE(times_of(program, timeline).makespan, simulate_times(schedule, cost).makespan);
    }
  EXPECT_GT(turns, 100);
}

}  // namespace
}  // namespace bubblescope::tests
