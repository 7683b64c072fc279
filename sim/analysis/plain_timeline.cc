// Notes the end of every op, and walks back from the last one.
#include "sim/analysis/plain_timeline.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/analysis/analyze.h"
#include "sim/analysis/idle.h"
#include "sim/analysis/memory_sum.h"
#include "sim/analysis/plain_bound.h"
#include "sim/analysis/plain_times.h"
#include "sim/analysis/plain_walk.h"
#include "sim/ir/range.h"

namespace bubblescope::inline sim {

namespace {

/// The memory that a rank holds, in each unit, or its maximum (MemoryAmount).
struct Held {
  std::int64_t chunks = 0;
  std::int64_t units = 0;
  Bytes bytes = 0;
};

/// Runs the ops of a step, and notes their ends and what ranks hold.
class Notes {
 public:
  struct Rank : PlainRank {
    Nanos* ends = nullptr;  ///< [op]
    Held now;
    Held highest;
    std::optional<std::size_t> peak_op;  ///< the first that reaches `highest.chunks`
    std::array<Nanos, kPlainKinds> busy{};
  };

  Notes(const Schedule& schedule, const CostModel& costs, const MemoryModel& memory)
      : times_(schedule, costs),
        memory_(memory),
        has_bytes_(!memory.by_microbatch.empty() || !memory.activation_bytes.empty()),
        first_ops_(schedule.rank_of_stage.size()),
        left_(kMaxNanos / (2 * Nanos{schedule.shape.ranks})) {
    const MemoryDelta chunk = chunk_millionths(memory.release);
    for (std::size_t kind = 0; kind < kPlainKinds; ++kind)
      deltas_[kind] = {chunk(static_cast<OpKind>(kind)), memory.unit(static_cast<OpKind>(kind))};
  }

  Nanos activation_travel(const Op& op) {
    return count(times_.activation(op.stage - 1, op.microbatch));
  }
  Nanos gradient_travel(const Op& op) {
    return count(times_.gradient(op.stage + 1, op.microbatch));
  }

  /// Runs an op, and returns its end.
  Nanos run(const Op& op, Nanos start, const PlainStage& stage, Rank& rank) {
    const auto kind = static_cast<std::size_t>(op.kind);
    const auto at = static_cast<std::size_t>(&op - rank.begin);
    const Nanos duration = count(times_.of(op));
    is_exact_ = is_exact_ && duration > 0;
    rank.busy[kind] += duration;
    rank.ends[at] = start + duration;
    if (stage.count[kind] == 1) first_ops_[static_cast<std::size_t>(op.stage)][kind] = at;
    hold(op, at, rank);
    return rank.ends[at];
  }

  /// Whether every op took some time, and all sums are in range.
  bool is_exact() const { return is_exact_; }
  const PlainTimes& times() const { return times_; }
  std::size_t first_op(std::size_t stage, std::size_t kind) const {
    return first_ops_[stage][kind];
  }

 private:
  /// Returns a time, or 0 from where the sum of all times may leave its range.
  Nanos count(Nanos time) {
    is_exact_ = is_exact_ && time >= 0 && time < left_;
    if (!is_exact_) return 0;
    left_ -= time;
    return time;
  }

  Bytes bytes_of(const Op& op) const {
    if (!memory_.by_microbatch.empty()) return memory_.by_microbatch(op).activations(op.kind);
    return memory_.activation_bytes[static_cast<std::size_t>(op.stage)](op.kind);
  }

  void hold(const Op& op, std::size_t at, Rank& rank) {
    const Held& delta = deltas_[static_cast<std::size_t>(op.kind)];
    rank.now.chunks += delta.chunks;
    rank.now.units = add_memory(rank.now.units, delta.units);
    if (rank.now.chunks > rank.highest.chunks) {
      rank.highest.chunks = rank.now.chunks;
      rank.peak_op = at;
    }
    rank.highest.units = std::max(rank.highest.units, rank.now.units);
    if (!has_bytes_) return;
    rank.now.bytes = add_memory(rank.now.bytes, bytes_of(op));
    rank.highest.bytes = std::max(rank.highest.bytes, rank.now.bytes);
  }

  PlainTimes times_;
  const MemoryModel& memory_;
  bool has_bytes_;
  std::array<Held, kPlainKinds> deltas_;  ///< what an op of each kind adds, without bytes
  std::vector<std::array<std::size_t, kPlainKinds>> first_ops_;  ///< [stage]: their places
  Nanos left_;                                                   ///< until the limit of all times
  bool is_exact_ = true;
};

/// An op of a rank's order, or the message with what it makes.
struct Step {
  Nanos start = 0;
  Nanos end = 0;
  std::int32_t rank = 0;
  std::size_t at = 0;
  bool is_message = false;
  std::int32_t peer = 0;

  bool operator==(const Step& other) const { return key() == other.key(); }
  bool operator<(const Step& other) const { return key() < other.key(); }

 private:
  std::tuple<std::int32_t, std::size_t, bool> key() const { return {rank, at, is_message}; }
};

class PlainTimeline {
 public:
  PlainTimeline(const Schedule& schedule, const CostModel& costs, const MemoryModel& memory)
      : schedule_(schedule),
        memory_(memory),
        notes_(schedule, costs, memory),
        walk_(schedule, notes_),
        ends_(static_cast<std::size_t>(schedule.op_count())) {
    Nanos* ends = ends_.data();
    for (Notes::Rank& rank : walk_.ranks()) {
      rank.ends = ends;
      ends += rank.end - rank.begin;
    }
  }

  bool run() { return walk_.run() && notes_.is_exact(); }

  /// The report, without what names an instruction.
  BubbleReport report() {
    BubbleReport report = begin_plain_report(schedule_, memory_);
    StepBounds bounds;
    for (std::size_t at = 0; at < report.ranks.size(); ++at) {
      RankReport& rank = report.ranks[at];
      report_waits(rank_of(at), rank);
      add_work(rank_of(at), rank);
      rank.peak = find_peak(at);
      bounds.end = std::max(bounds.end, rank.last_end);
    }
    for (const PlainStage& stage : walk_.stages())
      report.ranks[static_cast<std::size_t>(stage.rank)].sends += stage.sends();
    report.ranks = complete_idle_times(std::move(report.ranks), bounds, 0);
    report = with_totals(std::move(report));
    report.lower_bound =
        bound_plain_step(schedule_, walk_.stages(), notes_.times(), find_backwards());
    return report;
  }

  /// Adds that, and the instructions.
  PlainDetails details(BubbleReport report, const std::vector<std::int32_t>& ranks) {
    const std::vector<Step> path = find_path();
    std::vector<Step> named = path;
    for (std::size_t rank = 0; rank < report.ranks.size(); ++rank)
      if (rank_of(rank).peak_op) named.push_back(op_step(rank, *rank_of(rank).peak_op));
    add_first_ops(named);
    std::sort(named.begin(), named.end());
    named.erase(std::unique(named.begin(), named.end()), named.end());
    PlainDetails details = begin_details(std::move(report));
    const std::vector<InstructionId> ids = write(named, ranks, details);
    const auto id_of = [&](const Step& step) {
      const auto found = std::lower_bound(named.begin(), named.end(), step);
      return ids[static_cast<std::size_t>(found - named.begin())];
    };
    for (const Step& step : path) details.report.critical_path.push_back(id_of(step));
    for (std::size_t rank = 0; rank < details.report.ranks.size(); ++rank)
      if (const auto& at = rank_of(rank).peak_op)
        details.report.ranks[rank].peak.at = id_of(op_step(rank, *at));
    return details;
  }

 private:
  Notes::Rank& rank_of(std::size_t rank) { return walk_.ranks()[rank]; }
  std::size_t count_ops(std::size_t rank) {
    return static_cast<std::size_t>(rank_of(rank).end - rank_of(rank).begin);
  }
  const PlainStage& stage_of(const Op& op) const {
    return walk_.stages()[static_cast<std::size_t>(op.stage)];
  }

  static void add_work(const Notes::Rank& rank, RankReport& report) {
    for (std::size_t kind = 0; kind < kPlainKinds; ++kind) {
      const BusyKind busy_kind = classify_busy(static_cast<OpKind>(kind));
      report.busy += rank.busy[kind];
      report.busy_by_kind[static_cast<std::size_t>(busy_kind)] += rank.busy[kind];
    }
  }

  Peak find_peak(std::size_t rank) {
    const Held& highest = rank_of(rank).highest;
    Peak peak = count_peak(highest.chunks, highest.units, schedule_, memory_);
    const std::vector<Bytes>& fixed = memory_.static_bytes;
    if (!memory_.activation_bytes.empty() || !fixed.empty())
      peak.bytes = expect_countable(add_memory(highest.bytes, fixed.empty() ? 0 : fixed[rank]));
    return peak;
  }

  SplitBackwards find_backwards() const {
    SplitBackwards split;
    const auto microbatches = static_cast<std::size_t>(schedule_.shape.microbatches);
    split.is_split.reserve(walk_.stages().size() * microbatches);
    for (const PlainStage& stage : walk_.stages())
      for (std::int32_t microbatch = 0; microbatch < schedule_.shape.microbatches; ++microbatch)
        split.is_split.push_back(static_cast<std::uint8_t>(walk_.is_split(stage, microbatch)));
    return split;
  }

  Step op_step(std::size_t rank, std::size_t at) {
    const Nanos end = rank_of(rank).ends[at];
    const auto number = static_cast<std::int32_t>(rank);
    return {end - notes_.times().of(rank_of(rank).begin[at]), end, number, at, false, number};
  }

  /// The rank to which the message with what an op makes goes; nullopt if there is none.
  std::optional<std::int32_t> receiver_of(const Op& op) const {
    const auto& stages = walk_.stages();
    const auto at = static_cast<std::size_t>(op.stage);
    if (op.kind == OpKind::kForward && at + 1 < stages.size() && stages[at + 1].receives_input)
      return stages[at + 1].rank;
    if (gives_input_grad(op.kind) && at > 0 && stages[at - 1].receives_gradients)
      return stages[at - 1].rank;
    return {};
  }

  /// The message with what an op makes, if there is one.
  std::optional<Step> message_of(const Step& producer) {
    const Op& op = op_of(producer);
    const std::optional<std::int32_t> receiver = receiver_of(op);
    if (!receiver) return {};
    const PlainTimes& times = notes_.times();
    const Nanos travel = op.kind == OpKind::kForward ? times.activation(op.stage, op.microbatch)
                                                     : times.gradient(op.stage, op.microbatch);
    return Step{producer.end, producer.end + travel, producer.rank, producer.at, true, *receiver};
  }

  /// The message whose arrival starts an op; nullopt for ops that wait for none.
  std::optional<Step> message_to(const Step& step) {
    const Op& op = op_of(step);
    const PlainTimes& times = notes_.times();
    if (op.kind == OpKind::kForward && stage_of(op).receives_input)
      return message_of(
          find_step(op.stage - 1, step.start - times.activation(op.stage - 1, op.microbatch)));
    if (gives_input_grad(op.kind) && stage_of(op).receives_gradients)
      return message_of(
          find_step(op.stage + 1, step.start - times.gradient(op.stage + 1, op.microbatch)));
    return {};
  }

  /// The op that ends at a time on the rank of a stage. All ops take time, so no two end together.
  Step find_step(std::int32_t stage, Nanos end) {
    const auto number =
        static_cast<std::size_t>(walk_.stages()[static_cast<std::size_t>(stage)].rank);
    const Notes::Rank& rank = rank_of(number);
    const Nanos* const found = std::lower_bound(rank.ends, rank.ends + count_ops(number), end);
    return op_step(number, static_cast<std::size_t>(found - rank.ends));
  }

  const Op& op_of(const Step& step) {
    return rank_of(static_cast<std::size_t>(step.rank)).begin[step.at];
  }

  /// The path of find_critical_path(). An op that starts when the one before it ends is blocked by
  /// that, else by the message that it waits for.
  std::vector<Step> find_path() {
    std::vector<Step> path;
    std::size_t last = 0;
    for (std::size_t rank = 0; rank < walk_.ranks().size(); ++rank)
      if (rank_of(rank).free_from >= rank_of(last).free_from) last = rank;
    for (std::optional<Step> step = op_step(last, count_ops(last) - 1); step;
         step = find_blocker(*step))
      path.push_back(*step);
    std::reverse(path.begin(), path.end());
    return path;
  }

  std::optional<Step> find_blocker(const Step& step) {
    const auto rank = static_cast<std::size_t>(step.rank);
    if (step.is_message) return op_step(rank, step.at);
    if (step.at > 0 && rank_of(rank).ends[step.at - 1] == step.start)
      return op_step(rank, step.at - 1);
    return message_to(step);
  }

  void add_first_ops(std::vector<Step>& steps) {
    for (std::size_t stage = 0; stage < walk_.stages().size(); ++stage)
      for (std::size_t kind = 0; kind < kPlainKinds; ++kind) {
        if (walk_.stages()[stage].count[kind] == 0) continue;
        const auto rank = static_cast<std::size_t>(walk_.stages()[stage].rank);
        steps.push_back(op_step(rank, notes_.first_op(stage, kind)));
        if (const std::optional<Step> message = message_of(steps.back())) steps.push_back(*message);
      }
  }

  PlainDetails begin_details(BubbleReport report) const {
    PlainDetails details{std::move(report), {}, {}};
    details.program.ranks = schedule_.shape.ranks;
    for (std::int32_t rank = 0; rank < schedule_.shape.ranks; ++rank)
      details.program.lanes.push_back({rank, "compute"});
    return details;
  }

  /// Writes the named steps and all ops of some ranks, and returns the ids of the named ones.
  std::vector<InstructionId> write(const std::vector<Step>& named,
                                   const std::vector<std::int32_t>& ranks, PlainDetails& details) {
    std::vector<bool> is_shown(walk_.ranks().size(), false);
    for (const std::int32_t rank : ranks) is_shown[static_cast<std::size_t>(rank)] = true;
    std::vector<InstructionId> ids;
    const auto is_next = [&](std::size_t rank) {
      return ids.size() < named.size() && named[ids.size()].rank == static_cast<std::int32_t>(rank);
    };
    for (std::size_t rank = 0; rank < is_shown.size(); ++rank) {
      const std::size_t ops = is_shown[rank] ? count_ops(rank) : 0;
      for (std::size_t at = 0; at < ops; ++at) {
        const InstructionId id = add(op_step(rank, at), details);
        while (is_next(rank) && named[ids.size()].at == at)
          ids.push_back(named[ids.size()].is_message ? add(named[ids.size()], details) : id);
      }
      while (is_next(rank)) ids.push_back(add(named[ids.size()], details));
    }
    details.program.dependency_begin.assign(details.program.instructions.size() + 1, 0);
    return ids;
  }

  InstructionId add(const Step& step, PlainDetails& details) {
    Instruction& instruction = details.program.instructions.emplace_back();
    instruction.op = op_of(step);
    instruction.lane = static_cast<std::uint32_t>(step.rank);
    instruction.rank = step.rank;
    instruction.peer = step.peer;
    details.timeline.start.push_back(step.start);
    details.timeline.end.push_back(step.end);
    if (step.is_message) {
      const bool forward = instruction.op.kind == OpKind::kForward;
      instruction.op.kind = forward ? OpKind::kSendForward : OpKind::kSendBackward;
      instruction.lane = kNoLane;
    }
    return static_cast<InstructionId>(details.program.instructions.size() - 1);
  }

  const Schedule& schedule_;
  const MemoryModel& memory_;
  Notes notes_;
  PlainWalk<Notes> walk_;
  std::vector<Nanos> ends_;  ///< of all ops, rank after rank
};

/// Whether nothing but activations counts, for every micro-batch.
bool has_plain_memory(const MemoryModel& memory, const Schedule& schedule) {
  const std::size_t stages = schedule.rank_of_stage.size();
  return !memory.counts_outputs && !memory.counts_gathered &&
         covers_microbatches(memory.by_microbatch, schedule) &&
         (memory.activation_bytes.empty() || memory.activation_bytes.size() == stages) &&
         (memory.static_bytes.empty() || memory.static_bytes.size() == schedule.order.size());
}

}  // namespace

std::optional<PlainDetails> detail_plain_step(const ValidSchedule& schedule, const CostModel& costs,
                                              const MemoryModel& memory,
                                              const ChooseRanks& choose_ranks) {
  if (!has_plain_frame(schedule) || !covers_plain_step(costs, schedule) ||
      !has_plain_memory(memory, schedule))
    return {};
  PlainTimeline timeline(schedule, costs, memory);
  if (!timeline.run()) return {};
  BubbleReport report = timeline.report();
  const std::vector<std::int32_t> ranks = choose_ranks(report);
  return timeline.details(std::move(report), ranks);
}

}  // namespace bubblescope::inline sim
