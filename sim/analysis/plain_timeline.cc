// Notes the end of every op, and walks back from the last one.
#include "sim/analysis/plain_timeline.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/analysis/listed_runner.h"
#include "sim/analysis/plain_bound.h"
#include "sim/analysis/plain_report.h"
#include "sim/analysis/plain_times.h"
#include "sim/analysis/plain_walk.h"
#include "sim/ir/range.h"

namespace bubblescope::inline sim {

namespace {

/// An op of a rank's order, or the message with what it makes.
struct Entry {
  Nanos start = 0;
  Nanos end = 0;
  std::int32_t rank = 0;
  std::size_t at = 0;
  bool is_message = false;
  std::int32_t peer = 0;

  bool operator==(const Entry& other) const { return key() == other.key(); }
  bool operator<(const Entry& other) const { return key() < other.key(); }

 private:
  std::tuple<std::int32_t, std::size_t, bool> key() const { return {rank, at, is_message}; }
};

class PlainTimeline {
 public:
  PlainTimeline(const Schedule& schedule, const CostModel& costs, const MemoryModel& memory)
      : schedule_(schedule),
        memory_(memory),
        runner_(schedule, costs, memory),
        walk_(schedule, runner_),
        ends_(static_cast<std::size_t>(schedule.op_count())) {
    Nanos* ends = ends_.data();
    for (ListedRunner::Rank& rank : walk_.ranks()) {
      rank.ends = ends;
      ends += rank.end - rank.begin;
    }
  }

  bool run() { return walk_.run(); }

  /// The report, without what names an instruction.
  BubbleReport report() {
    BubbleReport report = begin_plain_report(schedule_, memory_);
    for (std::size_t at = 0; at < report.ranks.size(); ++at) {
      RankReport& rank = report.ranks[at];
      report_waits(rank_of(at), rank);
      add_work(rank_of(at).busy, rank);
      rank.peak = find_peak(at);
    }
    report = complete_plain_report(std::move(report), walk_.stages());
    report.lower_bound = bound_plain_step(schedule_, walk_.stages(), runner_.times(),
                                          list_backwards(walk_, schedule_.shape.microbatches));
    return report;
  }

  /// Adds that, and the instructions.
  PlainDetails details(BubbleReport report, const std::vector<std::int32_t>& ranks) {
    const std::vector<Entry> path = find_path();
    std::vector<Entry> named = path;
    for (std::size_t rank = 0; rank < report.ranks.size(); ++rank)
      if (rank_of(rank).peak_op) named.push_back(op_entry(rank, *rank_of(rank).peak_op));
    add_first_ops(named);
    std::sort(named.begin(), named.end());
    named.erase(std::unique(named.begin(), named.end()), named.end());
    PlainDetails details = begin_details(std::move(report));
    const std::vector<InstructionId> ids = write(named, ranks, details);
    const auto id_of = [&](const Entry& entry) {
      const auto found = std::lower_bound(named.begin(), named.end(), entry);
      return ids[static_cast<std::size_t>(found - named.begin())];
    };
    for (const Entry& entry : path) details.report.critical_path.push_back(id_of(entry));
    for (std::size_t rank = 0; rank < details.report.ranks.size(); ++rank)
      if (const auto& at = rank_of(rank).peak_op)
        details.report.ranks[rank].peak.at = id_of(op_entry(rank, *at));
    return details;
  }

 private:
  ListedRunner::Rank& rank_of(std::size_t rank) { return walk_.ranks()[rank]; }
  std::size_t count_ops(std::size_t rank) {
    return static_cast<std::size_t>(rank_of(rank).end - rank_of(rank).begin);
  }
  const PlainStage& stage_of(const Op& op) const {
    return walk_.stages()[static_cast<std::size_t>(op.stage)];
  }

  Peak find_peak(std::size_t rank) {
    Peak peak = rank_of(rank).held.peak(schedule_, memory_);
    const std::vector<Bytes>& fixed = memory_.static_bytes;
    if (!memory_.activation_bytes.empty() || !fixed.empty())
      peak.bytes = rank_of(rank).max_bytes + (fixed.empty() ? 0 : fixed[rank]);
    return peak;
  }

  Entry op_entry(std::size_t rank, std::size_t at) {
    const Nanos end = rank_of(rank).ends[at];
    const auto number = static_cast<std::int32_t>(rank);
    return {end - runner_.times().of(rank_of(rank).begin[at]), end, number, at, false, number};
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
  std::optional<Entry> message_of(const Entry& producer) {
    const Op& op = op_of(producer);
    const std::optional<std::int32_t> receiver = receiver_of(op);
    if (!receiver) return {};
    const PlainTimes& times = runner_.times();
    const Nanos travel = op.kind == OpKind::kForward ? times.activation(op.stage, op.microbatch)
                                                     : times.gradient(op.stage, op.microbatch);
    return Entry{producer.end, producer.end + travel, producer.rank, producer.at, true, *receiver};
  }

  /// The message whose arrival starts an op; nullopt for ops that wait for none.
  std::optional<Entry> message_to(const Entry& entry) {
    const Op& op = op_of(entry);
    const PlainTimes& times = runner_.times();
    if (op.kind == OpKind::kForward && stage_of(op).receives_input)
      return message_of(
          find_entry(op.stage - 1, entry.start - times.activation(op.stage - 1, op.microbatch)));
    if (gives_input_grad(op.kind) && stage_of(op).receives_gradients)
      return message_of(
          find_entry(op.stage + 1, entry.start - times.gradient(op.stage + 1, op.microbatch)));
    return {};
  }

  /// The op that ends at a time on the rank of a stage. All ops take time, so no two end together.
  Entry find_entry(std::int32_t stage, Nanos end) {
    const auto number =
        static_cast<std::size_t>(walk_.stages()[static_cast<std::size_t>(stage)].rank);
    const ListedRunner::Rank& rank = rank_of(number);
    const Nanos* const found = std::lower_bound(rank.ends, rank.ends + count_ops(number), end);
    return op_entry(number, static_cast<std::size_t>(found - rank.ends));
  }

  const Op& op_of(const Entry& entry) {
    return rank_of(static_cast<std::size_t>(entry.rank)).begin[entry.at];
  }

  /// The path of find_critical_path(). An op that starts when the one before it ends is blocked by
  /// that, else by the message that it waits for.
  std::vector<Entry> find_path() {
    std::vector<Entry> path;
    std::size_t last = 0;
    for (std::size_t rank = 0; rank < walk_.ranks().size(); ++rank)
      if (rank_of(rank).free_from >= rank_of(last).free_from) last = rank;
    for (std::optional<Entry> entry = op_entry(last, count_ops(last) - 1); entry;
         entry = find_blocker(*entry))
      path.push_back(*entry);
    std::reverse(path.begin(), path.end());
    return path;
  }

  std::optional<Entry> find_blocker(const Entry& entry) {
    const auto rank = static_cast<std::size_t>(entry.rank);
    if (entry.is_message) return op_entry(rank, entry.at);
    if (entry.at > 0 && rank_of(rank).ends[entry.at - 1] == entry.start)
      return op_entry(rank, entry.at - 1);
    return message_to(entry);
  }

  void add_first_ops(std::vector<Entry>& entries) {
    for (std::size_t stage = 0; stage < walk_.stages().size(); ++stage)
      for (std::size_t kind = 0; kind < kPlainKinds; ++kind) {
        if (walk_.stages()[stage].count[kind] == 0) continue;
        const auto rank = static_cast<std::size_t>(walk_.stages()[stage].rank);
        entries.push_back(op_entry(rank, runner_.first_op(stage, kind)));
        if (const std::optional<Entry> message = message_of(entries.back()))
          entries.push_back(*message);
      }
  }

  PlainDetails begin_details(BubbleReport report) const {
    PlainDetails details{std::move(report), {}, {}};
    details.program.ranks = schedule_.shape.ranks;
    for (std::int32_t rank = 0; rank < schedule_.shape.ranks; ++rank)
      details.program.lanes.push_back({rank, "compute"});
    return details;
  }

  /// Writes the named entries and all ops of some ranks, and returns the ids of the named ones.
  std::vector<InstructionId> write(const std::vector<Entry>& named,
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
        const InstructionId id = add(op_entry(rank, at), details);
        while (is_next(rank) && named[ids.size()].at == at)
          ids.push_back(named[ids.size()].is_message ? add(named[ids.size()], details) : id);
      }
      while (is_next(rank)) ids.push_back(add(named[ids.size()], details));
    }
    details.program.dependency_begin.assign(details.program.instructions.size() + 1, 0);
    return ids;
  }

  InstructionId add(const Entry& entry, PlainDetails& details) {
    Instruction& instruction = details.program.instructions.emplace_back();
    instruction.op = op_of(entry);
    instruction.lane = static_cast<std::uint32_t>(entry.rank);
    instruction.rank = entry.rank;
    instruction.peer = entry.peer;
    details.timeline.start.push_back(entry.start);
    details.timeline.end.push_back(entry.end);
    if (entry.is_message) {
      const bool forward = instruction.op.kind == OpKind::kForward;
      instruction.op.kind = forward ? OpKind::kSendForward : OpKind::kSendBackward;
      instruction.lane = kNoLane;
    }
    return static_cast<InstructionId>(details.program.instructions.size() - 1);
  }

  const Schedule& schedule_;
  const MemoryModel& memory_;
  ListedRunner runner_;
  PlainWalk<ListedRunner> walk_;
  std::vector<Nanos> ends_;  ///< of all ops, rank after rank
};

/// Whether nothing but activations counts, for every micro-batch, and no sum of it leaves its
/// range.
bool has_plain_memory(const MemoryModel& memory, const Schedule& schedule) {
  const std::size_t stages = schedule.rank_of_stage.size();
  return !memory.counts_outputs && !memory.counts_gathered &&
         covers_microbatches(memory.by_microbatch, schedule) &&
         (memory.activation_bytes.empty() || memory.activation_bytes.size() == stages) &&
         (memory.static_bytes.empty() || memory.static_bytes.size() == schedule.order.size()) &&
         std::all_of(memory.static_bytes.begin(), memory.static_bytes.end(),
                     [](Bytes bytes) { return bytes < kMaxBytes / 2; }) &&
         are_units_in_range(memory, schedule.op_count());
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
