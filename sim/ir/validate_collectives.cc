// Checks posted collectives, one rank after the other.
#include <map>
#include <set>
#include <string>
#include <utility>

#include "sim/ir/validate.h"

namespace bubblescope::inline sim {

namespace {

class CollectiveChecks {
 public:
  CollectiveChecks(const Schedule& schedule, std::int32_t rank)
      : schedule_(schedule), rank_(rank) {}

  Problems run() && {
    const RankOrder& cells = schedule_.posted[static_cast<std::size_t>(rank_)];
    for (std::size_t at = 0; at < cells.size(); ++at) {
      if (cells[at].kind == OpKind::kUnshard || cells[at].kind == OpKind::kReshard)
        sharded_.insert(cells[at].stage);
      if (makes_weight_grad(cells[at].kind))
        last_weight_grad_[cells[at].stage] = static_cast<std::int32_t>(at);
    }
    for (std::size_t at = 0; at < cells.size(); ++at)
      check(cells[at], static_cast<std::int32_t>(at));
    return std::move(problems_);
  }

 private:
  void check(const Op& op, std::int32_t at) {
    if (is_compute(op.kind)) {
      if (sharded_.contains(op.stage) && !gathered_.contains(op.stage))
        report(at, to_string(op) + " needs the parameters of stage " + std::to_string(op.stage),
               "add " + std::to_string(op.stage) + "UNSHARD before it");
      return;
    }
    if (op.kind == OpKind::kOptimizer || op.kind == OpKind::kNorm)
      return report(at, to_string(op) + " cannot be a cell of a schedule",
                    "remove it, and request it with `optimizer`");
    if (!is_collective(op.kind)) return;
    if (!is_here(op.stage))
      return report(at,
                    to_string(op) + " belongs to a stage that rank " + std::to_string(rank_) +
                        " does not hold",
                    "remove it");
    if (op.kind == OpKind::kReduceGrad) check_reduction(op, at);
    if (op.kind == OpKind::kUnshard && !gathered_.insert(op.stage).second)
      report(at, to_string(op) + " gathers parameters that are gathered already", "remove it");
    if (op.kind == OpKind::kReshard && gathered_.erase(op.stage) == 0)
      report(at, to_string(op) + " drops parameters that are not gathered",
             "add " + std::to_string(op.stage) +
                 "UNSHARD before the ops that need them, or remove it");
  }

  /// A runtime scales the gradients of a stage and sums them over its replicas in one go, so this
  /// must happen once, and to all of them.
  void check_reduction(const Op& op, std::int32_t at) {
    if (schedule_.pipelines > 1 || !schedule_.weights.empty())
      report(at, to_string(op) + " reduces without its replica, or for many updates at once",
             "remove it, and use `grad_reduction`");
    if (!reduced_.insert(op.stage).second)
      return report(at, to_string(op) + " reduces gradients that are reduced already", "remove it");
    const auto last = last_weight_grad_.find(op.stage);
    if (last == last_weight_grad_.end() || last->second < at) return;
    const RankOrder& cells = schedule_.posted[static_cast<std::size_t>(rank_)];
    report(at,
           to_string(op) + " runs before " +
               to_string(cells[static_cast<std::size_t>(last->second)]) +
               ", whose gradients would be left out",
           "move it after");
  }

  bool is_here(std::int32_t stage) const {
    if (stage < 0 || stage >= schedule_.stages()) return false;
    const std::int32_t first = schedule_.rank_of_stage[static_cast<std::size_t>(stage)];
    return rank_ >= first && rank_ < first + schedule_.replicas(stage);
  }

  void report(std::int32_t at, std::string what, std::string remedy) {
    problems_.push_back({rank_, at, std::move(what), std::move(remedy)});
  }

  const Schedule& schedule_;
  std::int32_t rank_;
  std::set<std::int32_t> sharded_;   ///< stages that are gathered anywhere on this rank
  std::set<std::int32_t> gathered_;  ///< at the current cell
  std::set<std::int32_t> reduced_;   ///< before the current cell
  std::map<std::int32_t, std::int32_t> last_weight_grad_;  ///< [stage]: its position
  Problems problems_;
};

}  // namespace

Problems validate_collectives(const Schedule& schedule) {
  Problems problems;
  if (schedule.posted.empty()) return problems;
  for (std::int32_t rank = 0; rank < schedule.shape.ranks; ++rank)
    for (Problem& problem : CollectiveChecks(schedule, rank).run())
      problems.push_back(std::move(problem));
  return problems;
}

}  // namespace bubblescope::inline sim
