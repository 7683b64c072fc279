// Checks posted collectives, one rank after the other.
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/ir/validate.h"

namespace bubblescope::inline sim {

namespace {

class CollectiveChecks {
 public:
  CollectiveChecks(const Schedule& schedule, std::int32_t rank)
      : schedule_(schedule), rank_(rank) {}

  Problems run() && {
    const RankOrder& cells = schedule_.posted[static_cast<std::size_t>(rank_)];
    for (const Op& op : cells)
      if (op.kind == OpKind::kUnshard) sharded_.insert(op.stage);
    for (std::size_t at = 0; at < cells.size(); ++at)
      check(cells[at], static_cast<std::int32_t>(at));
    return std::move(problems_);
  }

 private:
  void check(const Op& op, std::int32_t at) {
    if (is_compute(op.kind)) {
      if (sharded_.contains(op.stage) && !gathered_.contains(op.stage))
        report(at, to_string(op) + " needs the parameters of stage " + std::to_string(op.stage) +
                       "; add " + std::to_string(op.stage) + "UNSHARD before it");
      return;
    }
    if (op.kind == OpKind::kOptimizer || op.kind == OpKind::kNorm)
      return report(at, to_string(op) +
                            " cannot be a cell of a schedule; remove it, and request it with "
                            "`optimizer`");
    if (!is_collective(op.kind)) return;
    if (!is_here(op.stage))
      return report(at, to_string(op) + " belongs to a stage that rank " + std::to_string(rank_) +
                            " does not hold; remove it");
    if (op.kind == OpKind::kReduceGrad && (schedule_.pipelines > 1 || !schedule_.weights.empty()))
      report(at, to_string(op) +
                     " reduces without its replica, or for many updates at once; remove "
                     "it, and use `grad_reduction`");
    if (op.kind == OpKind::kUnshard && !gathered_.insert(op.stage).second)
      report(at, to_string(op) + " gathers parameters that are gathered already; remove it");
    if (op.kind == OpKind::kReshard && gathered_.erase(op.stage) == 0)
      report(at, to_string(op) + " drops parameters that are not gathered; remove it");
  }

  bool is_here(std::int32_t stage) const {
    if (stage < 0 || stage >= schedule_.stages()) return false;
    const std::int32_t first = schedule_.rank_of_stage[static_cast<std::size_t>(stage)];
    return rank_ >= first && rank_ < first + schedule_.replicas(stage);
  }

  void report(std::int32_t at, std::string message) {
    problems_.push_back({rank_, at, std::move(message)});
  }

  const Schedule& schedule_;
  std::int32_t rank_;
  std::set<std::int32_t> sharded_;   ///< stages that are gathered anywhere on this rank
  std::set<std::int32_t> gathered_;  ///< at the current cell
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
