// Advances one rank after the other, each until it waits for a message.
#include "sim/analysis/plain_step.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "sim/analysis/idle.h"
#include "sim/analysis/plain_bound.h"
#include "sim/ir/needs.h"
#include "sim/ir/plain_ops.h"
#include "sim/ir/range.h"

namespace bubblescope::inline sim {

namespace {

constexpr Nanos kNever = -1;

/// A stage, with all that its ops share.
struct PlainStage {
  std::int32_t rank = 0;
  std::int32_t first_microbatch = 0;  ///< those of its pipeline
  std::int32_t end_microbatch = 0;
  std::size_t own = 0;     ///< the first of its values, one per micro-batch
  std::size_t input = 0;   ///< those of the stage whose activations it reads
  std::size_t reader = 0;  ///< those of the stage that returns its gradients
  Nanos from_input = 0;    ///< how long activations travel
  Nanos from_reader = 0;
  std::int64_t sends = 0;  ///< its messages to other ranks
  std::array<Nanos, kPlainKinds> duration{};
  std::array<std::int64_t, kPlainKinds> count{};  ///< of the ops that have run
};

/// How far a rank has come.
struct PlainRank {
  const Op* next = nullptr;
  const Op* end = nullptr;
  Nanos free_from = 0;  ///< the end of its last op
  Nanos first_start = kNever;
  Nanos communication = 0;
  Nanos dependency = 0;
  std::int64_t chunks = 0;
  std::int64_t units = 0;
  std::int64_t max_chunks = 0;
  std::int64_t max_units = 0;
};

/// The end of the op that makes a value, or a state below 0.
///   activation  absent or awaited -> end of F -> end of B, or of I and then of W
///   gradient    absent or awaited -> end of B or I
constexpr Nanos kAbsent = -1;
constexpr Nanos kReleased = -2;    ///< the backward is complete
constexpr Nanos kAwaitsW = -3;     ///< I has run, and W has not
constexpr Nanos kAwaitedBy = -16;  ///< a rank waits for the value: -16 minus its number

bool is_awaited(Nanos state) { return state <= kAwaitedBy; }
bool is_missing(Nanos state) { return state == kAbsent || is_awaited(state); }

/// The values that an op waits for and makes.
struct Exchange {
  Nanos* awaited = nullptr;
  Nanos travel = 0;  ///< how long the awaited value is on its way
  Nanos* made = nullptr;
};

class PlainWalk {
 public:
  PlainWalk(const Schedule& schedule, const CostModel& costs, const MemoryModel& memory)
      : schedule_(schedule),
        row_(static_cast<std::size_t>(schedule.shape.microbatches)),
        ranks_(schedule.order.size()),
        stages_(schedule.rank_of_stage.size()),
        activations_(stages_.size() * row_, kAbsent),
        runnable_(ranks_.size()) {
    activations_.resize(activations_.size() + row_, 0);  // for stages that wait for nothing
    gradients_ = activations_;
    const MemoryDelta chunk = chunk_millionths(memory.release);
    for (std::size_t kind = 0; kind < kPlainKinds; ++kind) {
      chunk_deltas_[kind] = chunk(static_cast<OpKind>(kind));
      unit_deltas_[kind] = memory.unit(static_cast<OpKind>(kind));
    }
    for (std::int32_t stage = 0; stage < schedule.stages(); ++stage) add_stage(stage, costs);
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      ranks_[rank].next = schedule.order[rank].data();
      ranks_[rank].end = ranks_[rank].next + schedule.order[rank].size();
    }
  }

  /// Whether all ops run, and make each value once.
  bool run() {
    for (std::int32_t rank = 0; rank < schedule_.shape.ranks; ++rank) {
      wake(rank);
      while (runnable_count_ > 0) {
        advance(runnable_[--runnable_count_]);
        if (!is_plain_) return false;
      }
    }
    for (const PlainStage& stage : stages_) {
      const auto& [forwards, backwards, input_grads, weight_grads] = stage.count;
      const std::int64_t values = stage.end_microbatch - stage.first_microbatch;
      if (forwards != values || backwards + input_grads != values || weight_grads != input_grads)
        return false;
    }
    return std::all_of(ranks_.begin(), ranks_.end(),
                       [](const PlainRank& rank) { return rank.next == rank.end; });
  }

  /// The kind of all backwards; nullopt if micro-batches have different ones, or if pipelines have
  /// not equally many micro-batches.
  std::optional<OpKind> find_uniform_backward() const {
    std::int64_t full = 0;
    std::int64_t split = 0;
    for (const PlainStage& stage : stages_) {
      full += stage.count[kFull];
      split += stage.count[kSplit];
    }
    if ((full > 0 && split > 0) || schedule_.shape.microbatches % schedule_.pipelines != 0)
      return {};
    return split > 0 ? OpKind::kInputGrad : OpKind::kBackward;
  }

  BubbleReport report(const MemoryModel& memory) const {
    BubbleReport report;
    report.source = Timeline{}.source;
    report.schedule = schedule_.name;
    report.shape = schedule_.shape;
    report.ranks.resize(ranks_.size());
    StepBounds bounds;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      add_times(ranks_[rank], report.ranks[rank]);
      report.ranks[rank].peak = find_peak(ranks_[rank], memory);
      bounds.end = std::max(bounds.end, ranks_[rank].free_from);
    }
    for (const PlainStage& stage : stages_)
      add_work(stage, report.ranks[static_cast<std::size_t>(stage.rank)]);
    report.ranks = complete_idle_times(std::move(report.ranks), bounds, 0);
    report.memory = memory;
    return with_totals(std::move(report));
  }

 private:
  static constexpr auto kFull = static_cast<std::size_t>(OpKind::kBackward);
  static constexpr auto kSplit = static_cast<std::size_t>(OpKind::kInputGrad);

  /// The first micro-batch that Schedule::pipeline_of_microbatch() gives to a pipeline, or to a
  /// later one.
  std::int32_t first_of_pipeline(std::int64_t pipeline) const {
    const std::int64_t pipelines = schedule_.pipelines;
    const std::int64_t microbatches = schedule_.shape.microbatches;
    return static_cast<std::int32_t>((pipeline * microbatches + pipelines - 1) / pipelines);
  }

  void add_stage(std::int32_t number, const CostModel& costs) {
    const auto at = static_cast<std::size_t>(number);
    PlainStage& stage = stages_[at];
    stage.rank = schedule_.rank_of_stage[at];
    const std::int64_t pipeline = number / schedule_.stages_per_pipeline();
    stage.first_microbatch = first_of_pipeline(pipeline);
    stage.end_microbatch = first_of_pipeline(pipeline + 1);
    stage.own = at * row_;
    stage.input = stage.reader = stages_.size() * row_;
    const auto connect = [&](std::int32_t other, std::size_t& values, Nanos& travel) {
      values = static_cast<std::size_t>(other) * row_;
      if (schedule_.rank_of_stage[static_cast<std::size_t>(other)] == stage.rank) return;
      travel = costs.message;
      stage.sends += stage.end_microbatch - stage.first_microbatch;
    };
    for_each_input(schedule_, number,
                   [&](std::int32_t other) { connect(other, stage.input, stage.from_input); });
    for_each_reader(schedule_, number,
                    [&](std::int32_t other) { connect(other, stage.reader, stage.from_reader); });
    const StageCost& cost = costs.stages[at];
    stage.duration = {cost.forward, cost.backward, cost.input_grad, cost.weight_grad};
  }

  void wake(std::int32_t rank) { runnable_[runnable_count_++] = rank; }

  void advance(std::int32_t number) {
    PlainRank& rank = ranks_[static_cast<std::size_t>(number)];
    for (; rank.next != rank.end; ++rank.next) {
      const Op& op = *rank.next;
      PlainStage* const stage = find_stage(op, number);
      const Exchange values = stage == nullptr ? Exchange{} : find_values(op, *stage);
      is_plain_ = values.made != nullptr;
      if (!is_plain_) return;
      if (*values.awaited < 0) {
        is_plain_ = is_missing(*values.awaited);
        *values.awaited = kAwaitedBy - number;
        return;
      }
      if (is_awaited(*values.made)) wake(static_cast<std::int32_t>(kAwaitedBy - *values.made));
      *values.made = run_op(op.kind, *values.awaited + values.travel, values.travel, *stage, rank);
      if (op.kind != OpKind::kForward) release(op, *stage);
    }
  }

  /// The stage of an op that is in its place; null if it is not.
  PlainStage* find_stage(const Op& op, std::int32_t rank) {
    if (static_cast<std::size_t>(op.stage) >= stages_.size()) return nullptr;
    PlainStage& stage = stages_[static_cast<std::size_t>(op.stage)];
    const bool is_in_place = stage.rank == rank && op.microbatch >= stage.first_microbatch &&
                             op.microbatch < stage.end_microbatch && op.slice == 0 &&
                             op.pairing == Pairing::kAlone;
    return is_in_place ? &stage : nullptr;
  }

  /// Nothing is made by an op of another kind, by one that runs for the second time, or before its
  /// rank has run what comes first.
  Exchange find_values(const Op& op, const PlainStage& stage) {
    const auto microbatch = static_cast<std::size_t>(op.microbatch);
    Nanos& activation = activations_[stage.own + microbatch];
    if (op.kind == OpKind::kForward) {
      if (!is_missing(activation)) return {};
      return {&activations_[stage.input + microbatch], stage.from_input, &activation};
    }
    if (op.kind == OpKind::kWeightGrad)
      return {&no_wait_, 0, activation == kAwaitsW ? &end_of_weight_grad_ : nullptr};
    Nanos& gradient = gradients_[stage.own + microbatch];
    if (!gives_input_grad(op.kind) || activation < 0 || !is_missing(gradient)) return {};
    return {&gradients_[stage.reader + microbatch], stage.from_reader, &gradient};
  }

  /// Starts an op when its rank is free and the value that it waits for is there. Before that, the
  /// rank has waited for the message, and before the message for the op that sends it. Returns the
  /// end.
  Nanos run_op(OpKind kind, Nanos ready, Nanos travel, PlainStage& stage, PlainRank& rank) const {
    const auto which = static_cast<std::size_t>(kind);
    const Nanos start = std::max(rank.free_from, ready);
    const Nanos gap = start - rank.free_from;
    if (rank.first_start == kNever) {
      rank.first_start = start;
    } else if (gap > 0) {
      rank.communication += std::min(gap, travel);
      rank.dependency += gap - std::min(gap, travel);
    }
    ++stage.count[which];
    rank.chunks += chunk_deltas_[which];
    rank.max_chunks = std::max(rank.max_chunks, rank.chunks);
    rank.units += unit_deltas_[which];
    rank.max_units = std::max(rank.max_units, rank.units);
    return rank.free_from = start + stage.duration[which];
  }

  /// A backward or a part of it has run: nothing reads its activation any more.
  void release(const Op& op, const PlainStage& stage) {
    activations_[stage.own + static_cast<std::size_t>(op.microbatch)] =
        op.kind == OpKind::kInputGrad ? kAwaitsW : kReleased;
  }

  static void add_times(const PlainRank& rank, RankReport& report) {
    const auto idle = [&](IdleCause cause) -> Nanos& {
      return report.idle_by_cause[static_cast<std::size_t>(cause)];
    };
    report.first_start = rank.first_start == kNever ? 0 : rank.first_start;
    report.last_end = rank.free_from;
    idle(IdleCause::kWarmup) = report.first_start;
    idle(IdleCause::kCommunication) = rank.communication;
    idle(IdleCause::kDependency) = rank.dependency;
  }

  Peak find_peak(const PlainRank& rank, const MemoryModel& memory) const {
    Peak peak;
    peak.chunks = static_cast<double>(rank.max_chunks) / 1e6;
    peak.activations = peak.chunks / schedule_.shape.chunks;
    peak.units = static_cast<double>(rank.max_units) / (1e6 * memory.unit_parts);
    return peak;
  }

  static void add_work(const PlainStage& stage, RankReport& report) {
    report.sends += stage.sends;
    for (std::size_t kind = 0; kind < kPlainKinds; ++kind) {
      const Nanos busy = stage.count[kind] * stage.duration[kind];
      const BusyKind busy_kind = classify_busy(static_cast<OpKind>(kind));
      report.busy += busy;
      report.busy_by_kind[static_cast<std::size_t>(busy_kind)] += busy;
    }
  }

  const Schedule& schedule_;
  std::size_t row_;  ///< values of a stage
  std::vector<PlainRank> ranks_;
  std::vector<PlainStage> stages_;
  std::array<std::int64_t, kPlainKinds> chunk_deltas_{};  ///< what an op of each kind adds
  std::array<std::int64_t, kPlainKinds> unit_deltas_{};
  std::vector<Nanos> activations_;  ///< [stage * micro-batches + micro-batch]
  std::vector<Nanos> gradients_;
  Nanos no_wait_ = 0;
  Nanos end_of_weight_grad_ = kAbsent;
  std::vector<std::int32_t> runnable_;  ///< a stack; no rank waits for two values
  std::size_t runnable_count_ = 0;
  bool is_plain_ = true;
};

/// Whether micro-batches and links take the same times, and nothing is counted in bytes.
bool has_plain_models(const CostModel& costs, const MemoryModel& memory, std::size_t stages) {
  return costs.slices == 1 && costs.stages.size() == stages && costs.by_microbatch.empty() &&
         costs.message_between.empty() && costs.messages.empty() && costs.op_gap == 0 &&
         costs.parts.empty() && memory.activation_bytes.empty() && memory.by_microbatch.empty() &&
         memory.static_bytes.empty() && !memory.counts_outputs && !memory.counts_gathered;
}

/// Whether no sum of times or amounts can leave its range, whatever the order.
bool is_in_range(const Schedule& schedule, const CostModel& costs, const MemoryModel& memory) {
  Nanos longest = costs.message;
  Nanos shortest = costs.message;
  for (const StageCost& cost : costs.stages)
    for (const Nanos duration : {cost.forward, cost.backward, cost.input_grad, cost.weight_grad}) {
      longest = std::max(longest, duration);
      shortest = std::min(shortest, duration);
    }
  const double ops = 2 * static_cast<double>(schedule.op_count());
  double amount = 0;
  for (const std::int64_t delta :
       {memory.unit.forward, memory.unit.input_grad, memory.unit.weight_grad})
    amount += std::abs(static_cast<double>(delta));
  return shortest >= 0 &&
         static_cast<double>(longest) * ops * schedule.shape.ranks <
             static_cast<double>(kMaxNanos) / 2 &&
         amount * ops < static_cast<double>(kMaxBytes);
}

}  // namespace

bool has_plain_frame(const Schedule& schedule) {
  const Shape& shape = schedule.shape;
  const bool has_plain_shape = shape.ranks > 0 && shape.microbatches > 0 && shape.slices == 1 &&
                               schedule.order.size() == static_cast<std::size_t>(shape.ranks) &&
                               schedule.stages() > 0 && schedule.pipelines > 0 &&
                               schedule.stages() % schedule.pipelines == 0;
  const bool has_plain_ops = !schedule.forward_only && schedule.replicas_of_stage.empty() &&
                             schedule.turns_of_stage.empty() && schedule.fused_forwards == 1 &&
                             schedule.offload_target_of_rank.empty() && schedule.weights.empty() &&
                             schedule.recompute_of_stage.empty() && schedule.posted.empty() &&
                             schedule.side_stages == 0 && schedule.graph.is_chain() &&
                             schedule.after.empty();
  return has_plain_shape && has_plain_ops &&
         std::all_of(schedule.rank_of_stage.begin(), schedule.rank_of_stage.end(),
                     [&](std::int32_t rank) { return rank >= 0 && rank < shape.ranks; }) &&
         schedule.op_count() / 2 >=
             std::int64_t{schedule.stages_per_pipeline()} * shape.microbatches;
}

std::optional<BubbleReport> report_plain_step(const Schedule& schedule, const CostModel& costs,
                                              const MemoryModel& memory, LowerBound bound) {
  if (!has_plain_frame(schedule) ||
      !has_plain_models(costs, memory, schedule.rank_of_stage.size()) ||
      !is_in_range(schedule, costs, memory))
    return {};
  PlainWalk walk(schedule, costs, memory);
  if (!walk.run()) return {};
  if (bound == LowerBound::kSkip) return walk.report(memory);
  const std::optional<OpKind> backward = walk.find_uniform_backward();
  if (!backward) return {};
  BubbleReport report = walk.report(memory);
  report.lower_bound = bound_plain_step(schedule, costs, *backward);
  return report;
}

}  // namespace bubblescope::inline sim
