// Every rank advances as long as its inputs are known.
#include "tests/support/copy_interpreter.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace bubblescope::tests {

namespace {

class Interpreter {
 public:
  Interpreter(const Schedule& schedule, const CostModel& costs)
      : schedule_(schedule), costs_(costs), ranks_(schedule.order.size()) {
    for (const RankOrder& ops : schedule.order)
      for (const Op& op : ops) exists_[to_string(op)] = true;
  }

  std::map<std::string, OpTime> run() && {
    for (bool progress = true; progress;) {
      progress = false;
      for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
        while (step(rank)) progress = true;
    }
    return std::move(times_);
  }

 private:
  struct Rank {
    std::size_t next = 0;
    Nanos computed = 0;  ///< the end of the last compute op
    Nanos out_free = 0;
    Nanos in_free = 0;
    Nanos loaded = 0;  ///< the end of the last load
    Nanos memory = 0;  ///< when the memory requested by an EVICT is free
    std::map<std::string, Nanos> loaded_before_forward;
  };

  static std::string name(Op op, OpKind kind, std::int32_t stage) {
    op.kind = kind;
    op.stage = stage;
    return to_string(op);
  }

  bool step(std::size_t at) {
    Rank& rank = ranks_[at];
    const RankOrder& ops = schedule_.order[at];
    if (rank.next == ops.size()) return false;
    const Op& op = ops[rank.next];
    if (op.kind == OpKind::kEvict) return evict(rank, op, at);
    if (op.kind == OpKind::kLoad) return load(rank, op);
    return compute(rank, op);
  }

  std::optional<Nanos> end_of(const std::string& name) const {
    const auto known = times_.find(name);
    if (known == times_.end()) return {};
    return known->second.end;
  }

  bool note(Rank& rank, const Op& op, Nanos start, Nanos duration) {
    times_[to_string(op)] = {start, start + duration};
    ++rank.next;
    return true;
  }

  bool evict(Rank& rank, const Op& op, std::size_t at) {
    const std::string forward = name(op, OpKind::kForward, op.stage);
    Nanos start = std::max(rank.out_free, *end_of(forward));
    if (schedule_.offload_target_of_rank[at] != static_cast<std::int32_t>(at))
      start = std::max(start, rank.loaded_before_forward[forward]);
    rank.out_free = start + costs_.stage_cost(op).evict;
    rank.memory = std::max(rank.memory, rank.out_free);
    return note(rank, op, start, costs_.stage_cost(op).evict);
  }

  bool load(Rank& rank, const Op& op) {
    const Nanos start = std::max(
        {rank.in_free, rank.computed, rank.memory, *end_of(name(op, OpKind::kEvict, op.stage))});
    rank.loaded = rank.in_free = start + costs_.stage_cost(op).load;
    return note(rank, op, start, costs_.stage_cost(op).load);
  }

  /// The inputs of an op, by name; empty for ops that are not in the schedule.
  std::vector<std::pair<std::string, std::int32_t>> inputs(const Op& op) const {
    std::vector<std::pair<std::string, std::int32_t>> names;
    const auto add = [&](OpKind kind, std::int32_t stage) {
      const std::string text = name(op, kind, stage);
      if (exists_.contains(text)) names.emplace_back(text, stage);
    };
    if (op.kind == OpKind::kForward && !schedule_.is_first(op.stage))
      add(OpKind::kForward, op.stage - 1);
    if (op.kind == OpKind::kWeightGrad) add(OpKind::kInputGrad, op.stage);
    if (op.kind == OpKind::kRecompute || gives_input_grad(op.kind)) add(OpKind::kLoad, op.stage);
    if (gives_input_grad(op.kind) && !schedule_.is_last(op.stage)) {
      add(OpKind::kBackward, op.stage + 1);
      add(OpKind::kInputGrad, op.stage + 1);
    }
    return names;
  }

  bool compute(Rank& rank, const Op& op) {
    Nanos start = std::max(rank.computed, rank.memory);
    for (const auto& [input, stage] : inputs(op)) {
      const std::optional<Nanos> end = end_of(input);
      if (!end) return false;
      const bool crosses = schedule_.rank_of_stage[stage] != schedule_.rank_of_stage[op.stage];
      start = std::max(start, *end + (crosses ? costs_.message : 0));
    }
    const StageCost& cost = costs_.stage_cost(op);
    const Nanos durations[] = {cost.forward, cost.backward, cost.input_grad, cost.weight_grad,
                               cost.recompute};
    const Nanos duration = durations[static_cast<std::size_t>(op.kind)];
    rank.computed = start + duration;
    if (op.kind == OpKind::kForward) rank.loaded_before_forward[to_string(op)] = rank.loaded;
    return note(rank, op, start, duration);
  }

  const Schedule& schedule_;
  const CostModel& costs_;
  std::map<std::string, bool> exists_;
  std::vector<Rank> ranks_;
  std::map<std::string, OpTime> times_;
};

}  // namespace

std::map<std::string, OpTime> interpret_copies(const Schedule& schedule, const CostModel& costs) {
  return Interpreter(schedule, costs).run();
}

}  // namespace bubblescope::tests
