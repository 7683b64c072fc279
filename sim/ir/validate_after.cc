// Checks after edges, one after the other.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/ir/after_edges.h"
#include "sim/ir/validate.h"

namespace bubblescope::inline sim {

namespace {

/// An op's place in the order of its rank.
struct OrderPlace {
  std::int32_t rank = 0;
  std::int32_t position = 0;
};

class AfterChecks {
 public:
  explicit AfterChecks(const Schedule& schedule)
      : schedule_(schedule), index_(schedule), places_(index_.size()) {
    for (std::int32_t rank = 0; rank < schedule.shape.ranks; ++rank) {
      const RankOrder& ops = schedule.order[static_cast<std::size_t>(rank)];
      for (std::int32_t at = 0; at < static_cast<std::int32_t>(ops.size()); ++at)
        places_[index_(ops[static_cast<std::size_t>(at)])] = OrderPlace{rank, at};
    }
  }

  Problems run() && {
    for (const AfterEdge& edge : schedule_.after) check(edge);
    report_repeats();
    std::stable_sort(problems_.begin(), problems_.end(), [](const Problem& a, const Problem& b) {
      return std::pair(a.rank, a.position) < std::pair(b.rank, b.position);
    });
    return std::move(problems_);
  }

 private:
  void check(const AfterEdge& edge) {
    const std::optional<OrderPlace> waiting = find(edge.op);
    const std::optional<OrderPlace> awaited = find(edge.awaited);
    const auto is_at = [&](const std::string& what, std::string remedy) {
      report(waiting, edge, what, std::move(remedy));
    };
    if (!waiting) return is_at(to_string(edge.op) + " is not in the order", "correct or remove it");
    if (!awaited)
      return is_at(to_string(edge.awaited) + " is not in the order", "correct or remove it");
    if (index_(edge.op) == index_(edge.awaited))
      return is_at("an op cannot wait for itself", "remove the edge");
    sound_.push_back(&edge);
    if (waiting->rank == awaited->rank && waiting->position < awaited->position)
      is_at(to_string(edge.awaited) + " is later in the order of their rank",
            "move it up, or remove the edge");
  }

  /// Sorts, because a set of millions of edges would take too much memory.
  void report_repeats() {
    const auto ends = [this](const AfterEdge* edge) {
      return std::pair(index_(edge->op), index_(edge->awaited));
    };
    std::sort(sound_.begin(), sound_.end(), [&](const AfterEdge* left, const AfterEdge* right) {
      return ends(left) < ends(right);
    });
    for (std::size_t at = 1; at < sound_.size(); ++at)
      if (ends(sound_[at]) == ends(sound_[at - 1]))
        report(find(sound_[at]->op), *sound_[at], "the same edge is given twice", "remove one");
  }

  /// Returns nullopt unless the order has exactly this op.
  std::optional<OrderPlace> find(const Op& op) const {
    if (!occurs_in_order(op.kind) || op.stage < 0 || op.stage >= schedule_.stages() ||
        op.microbatch < 0 || op.microbatch >= schedule_.shape.microbatches || op.slice < 0 ||
        op.slice >= schedule_.shape.slices)
      return {};
    const std::optional<OrderPlace>& place = places_[index_(op)];
    if (!place) return {};
    const RankOrder& ops = schedule_.order[static_cast<std::size_t>(place->rank)];
    return ops[static_cast<std::size_t>(place->position)].kind == op.kind ? place : std::nullopt;
  }

  void report(const std::optional<OrderPlace>& at, const AfterEdge& edge, const std::string& what,
              std::string remedy) {
    Problem problem{{}, {}, "after edge '" + to_string(edge) + "': " + what, std::move(remedy)};
    if (at) problem.rank = at->rank;
    if (at) problem.position = at->position;
    problems_.push_back(std::move(problem));
  }

  const Schedule& schedule_;
  ValueIndex index_;
  std::vector<std::optional<OrderPlace>> places_;  ///< [value]: of the op that produces it
  std::vector<const AfterEdge*> sound_;            ///< edges between two ops of the order
  Problems problems_;
};

}  // namespace

Problems validate_after(const Schedule& schedule) {
  if (schedule.after.empty()) return {};
  return AfterChecks(schedule).run();
}

}  // namespace bubblescope::inline sim
