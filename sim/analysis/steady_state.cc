// Compares every instruction with that of a later micro-batch.
#include "sim/analysis/steady_state.h"

#include <algorithm>
#include <limits>

#include "sim/ir/lane_order.h"

namespace bubblescope::inline sim {

namespace {

constexpr Nanos kNever = std::numeric_limits<Nanos>::max();

/// Finds an instruction by its op, role and end of the message.
class InstructionIndex {
 public:
  InstructionIndex(const Schedule& schedule, const Program& program)
      : schedule_(schedule),
        microbatches_(static_cast<std::size_t>(schedule.shape.microbatches)),
        row_of_class_(static_cast<std::size_t>(schedule.stages()) *
                          static_cast<std::size_t>(schedule.shape.slices) * kOpKinds * kRoles * 2,
                      kNoRow) {
    for (InstructionId id = 0; id < program.size() && is_unique_; ++id) add(program, id);
  }

  /// False if two instructions cannot be told apart.
  bool is_unique() const { return is_unique_; }

  /// Finds the same instruction of a later micro-batch; kNoInstruction if there is none.
  InstructionId find(const Instruction& instruction, std::int32_t later_by) const {
    const Op& op = instruction.op;
    const auto microbatch = static_cast<std::size_t>(op.microbatch + later_by);
    if (!has_microbatch(op.kind) || microbatch >= microbatches_) return kNoInstruction;
    return rows_[row_of_class_[class_of(instruction)] + microbatch];
  }

 private:
  static constexpr std::size_t kRoles = 3;
  static constexpr std::size_t kNoRow = ~std::size_t{0};

  std::size_t class_of(const Instruction& instruction) const {
    const Op& op = instruction.op;
    const bool at_sender = schedule_.rank_of(op.stage, op.microbatch) == instruction.rank;
    const std::size_t stage =
        static_cast<std::size_t>(op.stage) * static_cast<std::size_t>(schedule_.shape.slices) +
        static_cast<std::size_t>(op.slice);
    return ((stage * kOpKinds + static_cast<std::size_t>(op.kind)) * kRoles +
            static_cast<std::size_t>(instruction.role)) *
               2 +
           (at_sender ? 1 : 0);
  }

  void add(const Program& program, InstructionId id) {
    const Instruction& instruction = program.instructions[id];
    if (!has_microbatch(instruction.op.kind)) return;
    std::size_t& row = row_of_class_[class_of(instruction)];
    if (row == kNoRow) {
      row = rows_.size();
      rows_.resize(row + microbatches_, kNoInstruction);
    }
    InstructionId& place = rows_[row + static_cast<std::size_t>(instruction.op.microbatch)];
    is_unique_ = place == kNoInstruction;
    place = id;
  }

  const Schedule& schedule_;
  std::size_t microbatches_;
  std::vector<std::size_t> row_of_class_;
  std::vector<InstructionId> rows_;  ///< [row + micro-batch]
  bool is_unique_ = true;
};

/// A Program with what the search needs to know of it.
class SteadyStateSearch {
 public:
  SteadyStateSearch(const ValidSchedule& schedule, const Program& program, const Timeline& timeline,
                    const OrderCycle& cycle, std::int64_t removed)
      : schedule_(schedule),
        program_(program),
        timeline_(timeline),
        cycle_(cycle),
        removed_(static_cast<std::size_t>(removed)),
        index_(schedule, program),
        previous_(find_previous_in_lane(program)),
        lanes_(static_cast<std::size_t>(program.ranks)) {
    for (InstructionId id = 0; id < program.size(); ++id) {
      const std::uint32_t lane = program.instructions[id].lane;
      if (lane < lanes_.size()) lanes_[lane].push_back(id);
    }
  }

  std::optional<SteadyState> run() {
    constexpr int kMaxTries = 8;
    if (!index_.is_unique() || !begin_with_orders()) return {};
    int tries = 0;
    for (std::int64_t cycles = 1; fits(cycles) && tries < kMaxTries; ++cycles) {
      const std::optional<Nanos> period = find_period(cycles);
      if (!period) continue;
      ++tries;
      SteadyState state{
          0, *period, cycles, static_cast<std::int32_t>(cycles) * cycle_.microbatches, {}};
      if (find_cut(state)) return state;
    }
    return {};
  }

 private:
  Nanos start(InstructionId id) const { return timeline_.start[id]; }

  /// Whether every rank's lane begins with the ops of its order, so that positions are the same.
  bool begin_with_orders() const {
    for (std::size_t rank = 0; rank < lanes_.size(); ++rank) {
      const RankOrder& ops = schedule_->order[rank];
      if (lanes_[rank].size() < ops.size() || ops.empty()) return false;
      if (program_.instructions[lanes_[rank][ops.size() - 1]].op != ops.back()) return false;
    }
    return true;
  }

  /// Returns the end of the part of a rank's order that repeats, in the shortened schedule.
  std::size_t end_of_cycles(std::size_t rank) const {
    const RankCycle& of_rank = cycle_.ranks[rank];
    return of_rank.end + of_rank.length - removed_ * of_rank.length;
  }

  /// Whether every rank repeats a period of so many cycles at least once.
  bool fits(std::int64_t cycles) const {
    for (std::size_t rank = 0; rank < lanes_.size(); ++rank) {
      const std::size_t lag = static_cast<std::size_t>(cycles) * cycle_.ranks[rank].length;
      if (cycle_.ranks[rank].begin + 2 * lag > end_of_cycles(rank)) return false;
    }
    return true;
  }

  /// By how much later the first rank does everything than a period before, in the second half of
  /// its cycles. A shorter part would say less: where a message delays one micro-batch of many, the
  /// others follow each other as if that were the whole period.
  std::optional<Nanos> find_period(std::int64_t cycles) const {
    const std::size_t lag = static_cast<std::size_t>(cycles) * cycle_.ranks[0].length;
    const std::size_t end = end_of_cycles(0) - lag;
    const std::size_t available = end - cycle_.ranks[0].begin;
    const std::vector<InstructionId>& lane = lanes_[0];
    const Nanos period = start(lane[end - 1 + lag]) - start(lane[end - 1]);
    for (std::size_t at = end - std::max(available / 2, std::min(lag, available)); at < end; ++at)
      if (start(lane[at + lag]) - start(lane[at]) != period) return {};
    return period > 0 ? std::optional(period) : std::nullopt;
  }

  /// Finds the time around the end of all ranks' cycles in which the step is steady, and the cut.
  bool find_cut(SteadyState& state) const {
    state.next.resize(program_.size());
    for (InstructionId id = 0; id < program_.size(); ++id)
      state.next[id] = index_.find(program_.instructions[id], state.microbatches);
    Nanos last_cycle = kNever;
    for (std::size_t rank = 0; rank < lanes_.size(); ++rank) {
      const std::size_t lag = static_cast<std::size_t>(state.cycles) * cycle_.ranks[rank].length;
      last_cycle = std::min(last_cycle, start(lanes_[rank][end_of_cycles(rank) - lag - 1]));
    }
    Nanos unsteady_until = -1;
    Nanos unsteady_from = kNever;
    for (InstructionId id = 0; id < program_.size(); ++id) {
      const Nanos time = start(id);
      if ((time <= unsteady_until || time >= unsteady_from) || recurs(state, id)) continue;
      if (time < last_cycle)
        unsteady_until = time;
      else
        unsteady_from = time;
    }
    state.cut = std::max(unsteady_until, find_last_wait(unsteady_until)) + state.period + 1;
    return state.cut <= unsteady_from && is_complete(state);
  }

  /// Whether an instruction is repeated a period later, after the same others.
  bool recurs(const SteadyState& state, InstructionId id) const {
    const InstructionId next = state.next[id];
    if (next == kNoInstruction || start(next) - start(id) != state.period ||
        timeline_.end[next] - timeline_.end[id] != state.period ||
        program_.instructions[next].lane != program_.instructions[id].lane)
      return false;
    if (!is_next(state, previous_[id], previous_[next])) return false;
    const auto awaited = program_.dependencies_of(id);
    const auto awaited_next = program_.dependencies_of(next);
    return std::equal(
        awaited.begin(), awaited.end(), awaited_next.begin(), awaited_next.end(),
        [&](InstructionId from, InstructionId to) { return is_next(state, from, to); });
  }

  static bool is_next(const SteadyState& state, InstructionId id, InstructionId next) {
    return id == kNoInstruction ? next == kNoInstruction : state.next[id] == next;
  }

  /// The last start of anything that waits for what is not steady yet, beyond its lane's order:
  /// what is earlier in a lane has ended when the previous instruction has.
  Nanos find_last_wait(Nanos unsteady_until) const {
    Nanos last = -1;
    for (InstructionId id = 0; id < program_.size(); ++id) {
      if (start(id) <= last) continue;
      bool waits = previous_[id] != kNoInstruction && start(previous_[id]) <= unsteady_until;
      const std::uint32_t lane = program_.instructions[id].lane;
      for (const InstructionId from : program_.dependencies_of(id)) {
        const bool is_in_lane = lane != kNoLane && program_.instructions[from].lane == lane;
        waits = waits || (!is_in_lane && start(from) <= unsteady_until);
      }
      if (waits) last = start(id);
    }
    return last;
  }

  /// Whether the period holds as many ops of every rank as its cycles do, all of them where the
  /// order repeats, and the messages that these ops send.
  bool is_complete(const SteadyState& state) const {
    for (std::size_t rank = 0; rank < lanes_.size(); ++rank) {
      const std::vector<InstructionId>& lane = lanes_[rank];
      const auto before = [&](Nanos time) {
        return static_cast<std::size_t>(
            std::partition_point(lane.begin(), lane.end(),
                                 [&](InstructionId id) { return start(id) < time; }) -
            lane.begin());
      };
      const std::size_t begin = before(state.cut - state.period);
      const std::size_t end = before(state.cut);
      const RankCycle& of_rank = cycle_.ranks[rank];
      const bool repeats = end - begin == static_cast<std::size_t>(state.cycles) * of_rank.length &&
                           begin >= of_rank.begin && end <= end_of_cycles(rank);
      if (!repeats || begin == 0 || end == lane.size()) return false;
    }
    return has_all_messages(state);
  }

  bool has_all_messages(const SteadyState& state) const {
    std::int64_t started = 0;
    std::int64_t produced = 0;
    for (InstructionId id = 0; id < program_.size(); ++id) {
      if (program_.instructions[id].lane < lanes_.size()) continue;
      if (state.is_in_period(start(id))) ++started;
      const auto awaited = program_.dependencies_of(id);
      if (awaited.empty()) return false;
      if (state.is_in_period(start(awaited[0]))) ++produced;
    }
    return started == produced;
  }

  const ValidSchedule& schedule_;
  const Program& program_;
  const Timeline& timeline_;
  const OrderCycle& cycle_;
  std::size_t removed_;
  InstructionIndex index_;
  std::vector<InstructionId> previous_;            ///< in the lane
  std::vector<std::vector<InstructionId>> lanes_;  ///< [rank]: its compute lane
};

}  // namespace

std::optional<SteadyState> find_steady_state(const ValidSchedule& schedule, const Program& program,
                                             const Timeline& timeline, const OrderCycle& cycle,
                                             std::int64_t removed) {
  return SteadyStateSearch(schedule, program, timeline, cycle, removed).run();
}

}  // namespace bubblescope::inline sim
