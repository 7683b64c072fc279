// Runs the ops of V-Half's building block, with the passes of shards, as early as its memory
// allows.
#include "schedules/v_vocabulary.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "schedules/chunk_cost.h"
#include "schedules/vocabulary.h"
#include "sim/ir/placement.h"

namespace bubblescope::schedules {

namespace {

/// The cells of an interval: F, I and W of two chunks.
constexpr std::int64_t kCells = 6;

/// The cells in which micro-batch 0 passes the ranks. Forwards go down in two cells per rank and up
/// again in one, and so do the input gradients; so on rank d, counted from 2d, F of the first chunk
/// is in cell 0 of every interval, I of the second in 3, F of the second in 1 or 4, I of the first
/// in 2 or 5, and two cells are free for W.
class Block {
 public:
  Block(std::int64_t ranks, std::int64_t barriers)
      : last_forward_(3 * (ranks - 1) + 1),
        first_backward_(next_cell(last_forward_ + 1 + barriers * kCells, 3)),
        first_chunk_(first_backward_ + 3 * (ranks - 1) + 2) {}

  std::int64_t forward_down(std::int64_t rank) const { return 2 * rank; }
  std::int64_t forward_up(std::int64_t rank) const { return last_forward_ - rank; }
  std::int64_t backward_down(std::int64_t rank) const { return first_backward_ + 2 * rank; }
  std::int64_t backward_up(std::int64_t rank) const { return first_chunk_ - rank; }
  /// When the last forward has ended.
  std::int64_t output() const { return last_forward_ + 1; }

  /// Returns the cells of the weight gradients of the second and the first chunk: each takes the
  /// next free cell.
  std::array<std::int64_t, 2> weights(std::int64_t rank) const {
    std::vector<std::int64_t> taken{forward_down(rank), forward_up(rank), backward_down(rank),
                                    backward_up(rank)};
    const auto take_next = [&taken](std::int64_t cell) {
      do {
        ++cell;
      } while (std::any_of(taken.begin(), taken.end(),
                           [&](std::int64_t each) { return (cell - each) % kCells == 0; }));
      taken.push_back(cell);
      return cell;
    };
    const std::int64_t second = take_next(backward_down(rank));
    return {second, take_next(backward_up(rank))};
  }

 private:
  /// Returns the first cell from `cell` on whose place in its interval is `in_interval`.
  static std::int64_t next_cell(std::int64_t cell, std::int64_t in_interval) {
    return cell + ((in_interval - cell) % kCells + kCells) % kCells;
  }

  std::int64_t last_forward_;
  std::int64_t first_backward_;
  std::int64_t first_chunk_;
};

/// The ops of one kind on one stage, in the order of micro-batches.
struct PassStream {
  std::int32_t stage = 0;
  OpKind kind = OpKind::kForward;
  std::int64_t cell = 0;  ///< of micro-batch 0
  int turn = 0;           ///< decides between equal cells: shards come before the chain
  std::int32_t next = 0;  ///< micro-batch
};

/// When a weight gradient, for which nothing else waits, takes its turn among the ops that can
/// start at the same moment.
enum class WeightTurn : std::uint8_t {
  kLast,          ///< after all others
  kNextInterval,  ///< as if its cell were an interval later
};

/// The first op of a stream of a rank, and when it can start.
struct Choice {
  Nanos start = 0;
  bool is_last = false;
  std::int64_t cell = 0;
  int turn = 0;
  std::size_t stream = 0;

  bool operator<(const Choice& other) const {
    return std::tie(start, is_last, cell, turn) <
           std::tie(other.start, other.is_last, other.cell, other.turn);
  }
};

/// How far the passes of a micro-batch are on all shards.
struct ShardEnds {
  std::int32_t ended = 0;
  Nanos latest = 0;    ///< end on any rank
  Nanos received = 0;  ///< the same, once the last stage of the chain has what they send
};

/// The orders of all ranks, and how long they take.
struct TimedOrders {
  std::vector<RankOrder> orders;
  Nanos makespan = 0;
};

/// Runs the block's ops with the durations of the costs: a rank takes the op that can start first,
/// or of several such ops the first one of the block. A stage holds no more micro-batches than in
/// the block, so ranks cannot block each other: the oldest micro-batch can always continue.
class BlockRun {
 public:
  BlockRun(const Schedule& schedule, const CostModel& costs, const Block& block,
           VocabAlgorithm algorithm, WeightTurn weight_turn)
      : schedule_(schedule),
        costs_(costs),
        weight_turn_(weight_turn),
        ranks_(schedule.shape.ranks),
        chain_(2 * ranks_),
        microbatches_(schedule.shape.microbatches),
        last_first_pass_(algorithm == VocabAlgorithm::kTwoBarriers ? OpKind::kForward
                                                                   : OpKind::kInputGrad),
        last_pass_(algorithm == VocabAlgorithm::kTwoBarriers ? OpKind::kBackward
                                                             : OpKind::kInputGrad),
        ends_(static_cast<std::size_t>(schedule.stages())),
        held_(ends_.size(), 0),
        max_held_(ends_.size(), 0),
        streams_(static_cast<std::size_t>(ranks_)),
        free_(streams_.size(), 0),
        orders_(streams_.size()),
        barrier_(static_cast<std::size_t>(microbatches_)),
        outputs_(barrier_.size()) {
    for (auto& of_stage : ends_)
      for (std::vector<Nanos>& of_kind : of_stage) of_kind.reserve(barrier_.size());
    for (std::int32_t rank = 0; rank < ranks_; ++rank) add_streams(rank, block, algorithm);
  }

  TimedOrders run() && {
    std::vector<std::optional<Choice>> choices;
    for (std::int32_t rank = 0; rank < ranks_; ++rank) choices.push_back(choose(rank));
    for (;;) {
      std::optional<std::size_t> first;
      for (std::size_t rank = 0; rank < choices.size(); ++rank)
        if (choices[rank] && (!first || choices[rank]->start < choices[*first]->start))
          first = rank;
      if (!first) return {std::move(orders_), *std::max_element(free_.begin(), free_.end())};
      const Op op = start(*first, *choices[*first]);
      const bool any_rank = releases_all(op);
      for (std::size_t rank = 0; rank < choices.size(); ++rank)
        if (any_rank || rank == *first || reads(rank, op))
          choices[rank] = choose(static_cast<std::int32_t>(rank));
    }
  }

 private:
  void add_streams(std::int32_t rank, const Block& block, VocabAlgorithm algorithm) {
    std::vector<PassStream>& streams = streams_[static_cast<std::size_t>(rank)];
    const std::int32_t up = chain_ - 1 - rank;
    const std::int32_t shard = chain_ + rank;
    const auto [weights_up, weights_down] = block.weights(rank);
    const auto add = [&](std::int32_t stage, OpKind kind, std::int64_t cell, int turn) {
      streams.push_back({stage, kind, cell, turn});
    };
    add(rank, OpKind::kForward, block.forward_down(rank), 3);
    add(up, OpKind::kForward, block.forward_up(rank), 3);
    add(up, OpKind::kInputGrad, block.backward_down(rank), 3);
    add(rank, OpKind::kInputGrad, block.backward_up(rank), 3);
    add(up, OpKind::kWeightGrad, weights_up, 3);
    add(rank, OpKind::kWeightGrad, weights_down, 3);
    add(shard, OpKind::kForward, block.output(), 0);
    if (algorithm == VocabAlgorithm::kOneBarrier) add(shard, OpKind::kInputGrad, block.output(), 1);
    add(shard, algorithm == VocabAlgorithm::kOneBarrier ? OpKind::kWeightGrad : OpKind::kBackward,
        block.output() + kCells, 2);
    max_held_[static_cast<std::size_t>(rank)] =
        (weights_down - block.forward_down(rank)) / kCells + 1;
    max_held_[static_cast<std::size_t>(up)] = (weights_up - block.forward_up(rank)) / kCells + 1;
  }

  Nanos message(std::int32_t from_stage, std::int32_t to_stage) const {
    const auto from = schedule_.rank_of_stage[static_cast<std::size_t>(from_stage)];
    const auto to = schedule_.rank_of_stage[static_cast<std::size_t>(to_stage)];
    if (from == to) return 0;
    if (costs_.message_between.empty()) return costs_.message;
    return costs_.message_between[static_cast<std::size_t>(from * ranks_ + to)];
  }

  std::optional<Nanos> end_of(std::int32_t stage, OpKind kind, std::int32_t microbatch) const {
    const std::vector<Nanos>& ends =
        ends_[static_cast<std::size_t>(stage)][static_cast<std::size_t>(kind)];
    if (static_cast<std::size_t>(microbatch) >= ends.size()) return {};
    return ends[static_cast<std::size_t>(microbatch)];
  }

  std::optional<Nanos> end_of_message(std::int32_t from, std::int32_t to, OpKind kind,
                                      std::int32_t microbatch) const {
    const std::optional<Nanos> end = end_of(from, kind, microbatch);
    if (!end) return {};
    return *end + message(from, to);
  }

  /// When an op has all that it waits for; nullopt as long as that has not run.
  std::optional<Nanos> inputs_of(const PassStream& stream) const {
    const auto& [stage, kind, cell, turn, at] = stream;
    const auto all = [&](const ShardEnds& ends, Nanos time) -> std::optional<Nanos> {
      if (ends.ended < ranks_) return {};
      return time;
    };
    const std::size_t microbatch = static_cast<std::size_t>(at);
    if (stage >= chain_) {
      if (kind == OpKind::kForward) return end_of_message(chain_ - 1, stage, OpKind::kForward, at);
      if (kind == OpKind::kInputGrad) return end_of(stage, OpKind::kForward, at);
      return all(barrier_[microbatch], barrier_[microbatch].latest);
    }
    if (kind == OpKind::kWeightGrad) return end_of(stage, OpKind::kInputGrad, at);
    if (kind == OpKind::kForward)
      return stage == 0 ? Nanos{0} : end_of_message(stage - 1, stage, OpKind::kForward, at);
    if (stage == chain_ - 1) return all(outputs_[microbatch], outputs_[microbatch].received);
    return end_of_message(stage + 1, stage, OpKind::kInputGrad, at);
  }

  std::optional<Choice> choose(std::int32_t rank) const {
    std::optional<Choice> best;
    const std::vector<PassStream>& streams = streams_[static_cast<std::size_t>(rank)];
    for (std::size_t at = 0; at < streams.size(); ++at) {
      const PassStream& stream = streams[at];
      const auto stage = static_cast<std::size_t>(stream.stage);
      if (stream.next == microbatches_) continue;
      if (stream.stage < chain_ && stream.kind == OpKind::kForward &&
          held_[stage] == max_held_[stage])
        continue;
      const std::optional<Nanos> inputs = inputs_of(stream);
      if (!inputs) continue;
      const bool is_weight = stream.stage < chain_ && stream.kind == OpKind::kWeightGrad;
      const bool is_late = is_weight && weight_turn_ == WeightTurn::kNextInterval;
      const Choice choice{std::max(*inputs, free_[static_cast<std::size_t>(rank)]),
                          is_weight && weight_turn_ == WeightTurn::kLast,
                          stream.cell + kCells * (stream.next + (is_late ? 1 : 0)), stream.turn,
                          at};
      if (!best || choice < *best) best = choice;
    }
    return best;
  }

  Op start(std::size_t rank, const Choice& choice) {
    PassStream& stream = streams_[rank][choice.stream];
    const auto stage = static_cast<std::size_t>(stream.stage);
    const Op op{stream.stage, stream.next++, 0, stream.kind};
    const StageCost& cost = costs_.stage_cost(op);
    const Nanos time = op.kind == OpKind::kForward      ? cost.forward
                       : op.kind == OpKind::kInputGrad  ? cost.input_grad
                       : op.kind == OpKind::kWeightGrad ? cost.weight_grad
                                                        : cost.backward;
    const Nanos end = free_[rank] = choice.start + time;
    ends_[stage][static_cast<std::size_t>(op.kind)].push_back(end);
    orders_[rank].push_back(op);
    if (op.stage >= chain_) {
      if (op.kind == last_first_pass_) record(barrier_, op, end);
      if (op.kind == last_pass_) record(outputs_, op, end);
    } else if (op.kind == OpKind::kForward) {
      ++held_[stage];
    } else if (op.kind == OpKind::kWeightGrad) {
      --held_[stage];
    }
    return op;
  }

  void record(std::vector<ShardEnds>& ends, const Op& op, Nanos end) const {
    ShardEnds& of_all = ends[static_cast<std::size_t>(op.microbatch)];
    ++of_all.ended;
    of_all.latest = std::max(of_all.latest, end);
    of_all.received = std::max(of_all.received, end + message(op.stage, chain_ - 1));
  }

  /// Whether ops on all ranks, or on the last stage of the chain, waited only for this op.
  bool releases_all(const Op& op) const {
    if (op.stage < chain_) return op.stage == chain_ - 1 && op.kind == OpKind::kForward;
    const auto at = static_cast<std::size_t>(op.microbatch);
    return (op.kind == last_first_pass_ && barrier_[at].ended == ranks_) ||
           (op.kind == last_pass_ && outputs_[at].ended == ranks_);
  }

  /// Whether a rank has the next stage, or the previous one, and waits for this op.
  bool reads(std::size_t rank, const Op& op) const {
    const std::int32_t reader = op.kind == OpKind::kForward ? op.stage + 1 : op.stage - 1;
    return reader >= 0 && schedule_.rank_of_stage[static_cast<std::size_t>(reader)] ==
                              static_cast<std::int32_t>(rank);
  }

  const Schedule& schedule_;
  const CostModel& costs_;
  WeightTurn weight_turn_;
  std::int32_t ranks_;
  std::int32_t chain_;  ///< its number of stages
  std::int32_t microbatches_;
  OpKind last_first_pass_;  ///< of a shard: for which all second passes wait
  OpKind last_pass_;        ///< for which the last stage of the chain waits
  std::vector<std::array<std::vector<Nanos>, kComputeKinds>> ends_;  ///< [stage][kind][microbatch]
  std::vector<std::int64_t> held_;                                   ///< [stage]
  std::vector<std::int64_t> max_held_;
  std::vector<std::vector<PassStream>> streams_;  ///< [rank]
  std::vector<Nanos> free_;                       ///< [rank]: the end of its last op
  std::vector<RankOrder> orders_;
  std::vector<ShardEnds> barrier_;  ///< [microbatch]
  std::vector<ShardEnds> outputs_;
};

Schedule build_v_half_vocab(const ScheduleRequest& request, VocabAlgorithm algorithm) {
  const std::int32_t ranks = request.shape.ranks;
  const bool two = algorithm == VocabAlgorithm::kTwoBarriers;
  const ShardBarrier barrier = two ? ShardBarrier{OpKind::kForward, OpKind::kBackward}
                                   : ShardBarrier{OpKind::kInputGrad, OpKind::kWeightGrad};
  Schedule schedule = place_shards(request, zigzag_placement(ranks, 2), barrier);
  schedule.shape = request.shape;
  schedule.order.resize(static_cast<std::size_t>(ranks));
  const CostModel costs =
      request.stage_costs ? *request.stage_costs : spread(request.cost, schedule);
  const auto run = [&](WeightTurn turn) {
    return BlockRun(schedule, costs, Block(ranks, two ? 2 : 1), algorithm, turn).run();
  };
  TimedOrders last = run(WeightTurn::kLast);
  TimedOrders next = run(WeightTurn::kNextInterval);
  schedule.order = std::move(next.makespan < last.makespan ? next : last).orders;
  return schedule;
}

/// One rank is never idle: T = m (2 (F + I + W) + 3 o) with F, I and W of a chunk and GEMMs of o.
/// More ranks have no closed form, because their order follows from the costs.
Claims claim_v_half_vocab(const ScheduleRequest& request) {
  Claims claims;
  const std::optional<ChunkCost> cost = chunk_cost(request);
  if (request.shape.ranks > 1 || !cost) return claims;
  claims.makespan = claims.max_span =
      request.shape.microbatches *
      (2 * (cost->forward + cost->input_grad + cost->weight_grad) + 3 * request.cost.output_layer);
  return claims;
}

}  // namespace

ScheduleDef define_v_half_vocab(ScheduleDef def, VocabAlgorithm algorithm) {
  def.implied_chunks = 2;
  def.reads_costs = true;
  def.splits_output_layer = true;
  def.refuse = refuse_many_barriers;
  def.build = [=](const ScheduleRequest& request) {
    return build_v_half_vocab(request, algorithm);
  };
  def.claims = claim_v_half_vocab;
  return def;
}

}  // namespace bubblescope::schedules
