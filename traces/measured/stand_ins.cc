// Copies the ops of neighbours.
#include "traces/measured/stand_ins.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace bubblescope::traces {

namespace {

class StandIns {
 public:
  StandIns(const std::vector<ObservedOp>& computes, const StagesByRank& missing)
      : missing_(missing) {
    for (const ObservedOp& observed : computes) {
      const Op& op = observed.op;
      stages_[op.stage].push_back(&observed);
      if (op.kind == OpKind::kForward || gives_input_grad(op.kind)) by_op_[key_of(op)] = &observed;
    }
    end_ = stages_.rbegin()->first + 1;
    for (const auto& [_, stages] : missing) end_ = std::max(end_, *stages.rbegin() + 1);
  }

  std::vector<ObservedOp> make() const {
    std::vector<ObservedOp> made;
    for (const auto& [rank, stages] : missing_)
      for (const std::int32_t stage : stages)
        for (const ObservedOp* like : stages_.at(find_neighbour(stage)))
          made.push_back(make_one(*like, rank, stage));
    std::stable_sort(made.begin(), made.end(),
                     [&](const ObservedOp& left, const ObservedOp& right) {
                       return std::tuple(left.start, order_of(left.op)) <
                              std::tuple(right.start, order_of(right.op));
                     });
    return made;
  }

 private:
  using Key = std::tuple<std::int32_t, bool, std::int32_t, std::int16_t>;

  static Key key_of(const Op& op) {
    return {op.stage, op.kind == OpKind::kForward, op.microbatch, op.slice};
  }

  /// The nearest stage that was recorded: in the same half of the stages, as two pipelines have one
  /// each, and before this one, where there is such a stage.
  std::int32_t find_neighbour(std::int32_t stage) const {
    const auto distance = [&](std::int32_t other) {
      const bool crosses = (2 * stage < end_) != (2 * other < end_);
      return std::tuple(crosses, other > stage, other > stage ? other - stage : stage - other);
    };
    std::int32_t nearest = stages_.begin()->first;
    for (const auto& [other, _] : stages_)
      if (distance(other) < distance(nearest)) nearest = other;
    return nearest;
  }

  /// Returns the op of the next stage in this direction that was recorded with the micro-batch.
  const ObservedOp* find_next(Op op, std::int32_t direction) const {
    for (op.stage += direction; op.stage >= 0 && op.stage < end_; op.stage += direction)
      if (const auto found = by_op_.find(key_of(op)); found != by_op_.end()) return found->second;
    return nullptr;
  }

  ObservedOp make_one(const ObservedOp& like, std::int32_t rank, std::int32_t stage) const {
    ObservedOp made;
    made.op = like.op;
    made.op.stage = stage;
    made.op.pairing = Pairing::kAlone;
    made.recorder = rank;
    made.replica = like.replica;
    made.step = like.step;
    const std::int32_t to_input = like.op.kind == OpKind::kForward ? -1 : 1;
    if (const ObservedOp* const input = find_next(made.op, to_input))
      made.start = input->end;
    else if (const ObservedOp* const reader = find_next(made.op, -to_input))
      made.start = reader->start;
    made.end = made.start;
    return made;
  }

  /// Returns a key that orders ops at one time: forwards along the stages, then backwards against
  /// them.
  std::int32_t order_of(const Op& op) const {
    const std::int32_t back = 2 * (2 * end_ - op.stage);
    if (op.kind == OpKind::kForward) return 2 * op.stage;
    if (op.kind == OpKind::kWeightGrad) return 8 * end_;
    return op.kind == OpKind::kRecompute ? back : back + 1;
  }

  const StagesByRank& missing_;
  std::map<std::int32_t, std::vector<const ObservedOp*>> stages_;
  std::map<Key, const ObservedOp*> by_op_;
  std::int32_t end_ = 0;  ///< number of stages
};

}  // namespace

StagesByRank find_unrecorded_stages(const std::vector<ObservedOp>& computes, std::int32_t ranks) {
  StagesByRank known;
  for (const ObservedOp& observed : computes) known[observed.recorder].insert(observed.op.stage);
  if (std::ssize(known) == ranks) return {};
  StagesByRank missing = complete_placement(known, ranks).value_or(StagesByRank{});
  for (const auto& [rank, _] : known) missing.erase(rank);
  return missing;
}

std::vector<ObservedOp> make_stand_ins(const std::vector<ObservedOp>& computes,
                                       const StagesByRank& missing) {
  if (computes.empty() || missing.empty()) return {};
  return StandIns(computes, missing).make();
}

}  // namespace bubblescope::traces
