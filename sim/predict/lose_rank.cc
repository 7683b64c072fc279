// Distributes a lost rank's ops over its peers.
#include "sim/predict/lose_rank.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "sim/engine/simulate.h"
#include "sim/ir/error.h"
#include "sim/ir/size_limits.h"
#include "sim/predict/predict.h"

namespace bubblescope::inline sim {

namespace {

/// The ops that a rank runs at once: an op, or the two ops of a pair. `time` is when the pipeline
/// would run them.
struct Unit {
  Nanos time = 0;
  Op first;
  std::optional<Op> second;
};

using Units = std::vector<Unit>;

/// [rank]: the starts of its ops where every op takes one unit of time and messages none.
std::vector<std::vector<Nanos>> find_unit_times(const ValidSchedule& pipeline) {
  const Program program = lower_or_refuse(pipeline, {});
  std::vector<Nanos> durations;
  for (const Instruction& instruction : program.instructions)
    durations.push_back(is_compute(instruction.op.kind) ? 1 : 0);
  const Timeline timeline = simulate(program, durations);
  std::vector<std::vector<Nanos>> times(pipeline->order.size());
  for (InstructionId id = 0; id < program.size(); ++id) {
    const Instruction& instruction = program.instructions[id];
    if (is_compute(instruction.op.kind))
      times[static_cast<std::size_t>(instruction.rank)].push_back(timeline.start[id]);
  }
  return times;
}

/// Returns the units of a rank, with the micro-batch numbers of one replica.
Units find_units(const RankOrder& order, const std::vector<Nanos>& times, const LostRank& lost,
                 std::int32_t replica) {
  Units units;
  for (std::size_t at = 0; at < order.size(); ++at) {
    Op op = order[at];
    op.microbatch = op.microbatch * lost.replicas + replica;
    if (op.pairing == Pairing::kSecond)
      units.back().second = op;
    else
      units.push_back({times[at], op, {}});
  }
  return units;
}

/// Returns the number of units that contain the first `ops` ops of an order.
std::size_t count_units(const RankOrder& order, std::size_t ops) {
  return static_cast<std::size_t>(
      std::count_if(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(ops),
                    [](const Op& op) { return op.pairing != Pairing::kSecond; }));
}

/// The part of the lost rank's units that one peer takes over.
Units take_turns(const Units& all, const LostRank& lost, std::int32_t peer) {
  Units taken;
  for (const Unit& unit : all) {
    const bool first = lost.peer_of(unit.first.microbatch) == peer;
    const bool second = unit.second && lost.peer_of(unit.second->microbatch) == peer;
    if (first && second) {
      taken.push_back(unit);
      continue;
    }
    if (!first && !second) continue;
    Op alone = first ? unit.first : *unit.second;
    alone.pairing = Pairing::kAlone;
    taken.push_back({unit.time, alone, {}});
  }
  return taken;
}

/// The ops of both, in the order of their times, after the units of its own that a rank has begun.
RankOrder merge(const Units& own, const Units& taken, std::size_t begun) {
  const auto rest = own.begin() + static_cast<std::ptrdiff_t>(begun);
  Units all(own.begin(), rest);
  std::merge(rest, own.end(), taken.begin(), taken.end(), std::back_inserter(all),
             [](const Unit& a, const Unit& b) { return a.time < b.time; });
  RankOrder order;
  for (const Unit& unit : all) {
    order.push_back(unit.first);
    if (unit.second) order.push_back(*unit.second);
  }
  return order;
}

/// The turns of a stage's replicas: in a whole stage each runs its own micro-batches. They repeat
/// after a round, or end before with the micro-batches of the job.
std::vector<std::int32_t> make_turns(const LostRank& lost, bool is_whole,
                                     std::int32_t microbatches) {
  const std::int64_t round = std::int64_t{lost.replicas} * (is_whole ? 1 : lost.replicas - 1);
  std::vector<std::int32_t> turns;
  const std::int64_t size = std::min<std::int64_t>(round, microbatches);
  for (std::int32_t microbatch = 0; microbatch < size; ++microbatch) {
    const bool moves = !is_whole && lost.is_damaged(microbatch);
    turns.push_back(moves ? lost.peer_of(microbatch) : microbatch % lost.replicas);
  }
  return turns;
}

/// Throws Error where a job of these replicas is too large.
void expect_job_size(const Schedule& pipeline, std::int32_t replicas) {
  struct Size {
    const char* of;
    std::int64_t in_pipeline;
    std::int64_t limit;
  };
  for (const Size& size : {Size{"ranks", pipeline.shape.ranks, kMaxRanks},
                           Size{"micro-batches", pipeline.shape.microbatches, kMaxMicrobatches},
                           Size{"ops", pipeline.op_count(), kMaxOps}})
    if (size.in_pipeline * replicas > size.limit)
      throw Error("`lose`: the job has " + std::to_string(size.in_pipeline * replicas) + " " +
                  size.of + ", the limit is " + std::to_string(size.limit) +
                  "; give fewer `replicas`");
}

}  // namespace

void expect_rank_may_be_lost(const Schedule& pipeline, const LostRank& lost) {
  const auto refuse = [&](const std::string& what) {
    throw Error(Fault::kProblem, "`lose` cannot move the micro-batches of " + pipeline.name +
                                     " to other replicas: " + what);
  };
  if (lost.replicas < 2)
    throw Error("`lose` needs other replicas of the pipeline; give their number as `replicas`");
  if (lost.rank < 0 || lost.rank >= pipeline.shape.ranks)
    throw Error("`lose` names rank " + std::to_string(lost.rank) + ", ranks are 0.." +
                std::to_string(pipeline.shape.ranks - 1));
  if (!pipeline.posted.empty()) refuse("it says itself where messages are posted and ranks idle");
  if (!pipeline.weights.empty()) refuse("it updates weights within the step");
  if (!pipeline.offload_target_of_rank.empty()) refuse("its activations are copied out and back");
  if (pipeline.fused_forwards > 1) refuse("its forwards are fused");
  if (!pipeline.after.empty() || pipeline.side_stages > 0)
    refuse("its ops wait for each other beyond the data flow");
  if (!pipeline.graph.is_chain()) refuse("its stages are a graph");
  if (!pipeline.replicas_of_stage.empty()) refuse("its stages have replicas of their own");
  const std::string pipelines = std::to_string(pipeline.pipelines);
  if (pipeline.shape.microbatches % pipeline.pipelines != 0)
    refuse("the micro-batches of its " + pipelines +
           " pipelines differ in number; give a multiple of " + pipelines + " as `microbatches`");
  expect_job_size(pipeline, lost.replicas);
}

ValidSchedule lose_rank(const ValidSchedule& pipeline, const LostRank& lost, std::size_t begun) {
  expect_rank_may_be_lost(pipeline, lost);
  const std::vector<std::vector<Nanos>> times = find_unit_times(pipeline);
  Schedule job = pipeline;
  job.shape.ranks = lost.first_replica(pipeline->shape.ranks);
  job.shape.microbatches *= lost.replicas;
  job.shape.group_size.reset();
  for (std::int32_t& rank : job.rank_of_stage) {
    job.replicas_of_stage.push_back(lost.replicas_of(rank));
    job.turns_of_stage.push_back(make_turns(lost, rank != lost.rank, job.shape.microbatches));
    rank = lost.first_replica(rank);
  }
  const auto gone = static_cast<std::size_t>(lost.rank);
  const Units moved = find_units(pipeline->order[gone], times[gone], lost, lost.replicas - 1);
  job.order.clear();
  for (std::int32_t rank = 0; rank < pipeline->shape.ranks; ++rank)
    for (std::int32_t replica = 0; replica < lost.replicas_of(rank); ++replica) {
      const auto at = static_cast<std::size_t>(rank);
      const Units own = find_units(pipeline->order[at], times[at], lost, replica);
      const bool is_peer = rank == lost.rank;
      job.order.push_back(is_peer ? merge(own, take_turns(moved, lost, replica),
                                          count_units(pipeline->order[at], begun))
                                  : merge(own, {}, 0));
    }
  return require_valid(std::move(job));
}

}  // namespace bubblescope::inline sim
