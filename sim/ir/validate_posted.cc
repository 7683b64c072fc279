// Compares the cells of posted lists with the order that they were written for.
#include <string>
#include <utility>

#include "sim/ir/counted.h"
#include "sim/ir/validate.h"

namespace bubblescope::inline sim {

namespace {

/// Checks what the other checks of posted cells rely on: there is one list per rank, and it
/// contains the ops of the order in the same order. Other cells are ignored.
class CellChecks {
 public:
  explicit CellChecks(const Schedule& schedule) : schedule_(schedule) {}

  Problems run() && {
    if (schedule_.posted.size() != schedule_.order.size())
      return {{{},
               {},
               "there are posted lists for " + counted(std::ssize(schedule_.posted), "rank") +
                   ", the order is of " + std::to_string(schedule_.order.size()),
               "give each rank its list, or none"}};
    for (std::int32_t rank = 0; rank < schedule_.shape.ranks; ++rank) check_rank(rank);
    return std::move(problems_);
  }

 private:
  void check_rank(std::int32_t rank) {
    const RankOrder& order = schedule_.order[rank];
    const RankOrder& cells = schedule_.posted[rank];
    std::size_t next = 0;
    for (std::size_t at = 0; at < cells.size(); ++at) {
      const Op& cell = cells[at];
      if (!occurs_in_order(cell.kind)) continue;
      if (next == order.size() || cell != order[next])
        return report(rank, at,
                      to_string(cell) + " is posted where the order has " +
                          (next == order.size() ? "no further op" : to_string(order[next])),
                      "give both the same ops");
      ++next;
    }
    if (next < order.size())
      report(rank, cells.size(), to_string(order[next]) + " is missing from the posted cells",
             "add it");
  }

  void report(std::int32_t rank, std::size_t at, std::string what, std::string remedy) {
    problems_.push_back({rank, static_cast<std::int32_t>(at), std::move(what), std::move(remedy)});
  }

  const Schedule& schedule_;
  Problems problems_;
};

}  // namespace

Problems validate_posted(const Schedule& schedule) {
  if (schedule.posted.empty()) return {};
  Problems problems = CellChecks(schedule).run();
  if (!problems.empty()) return problems;
  problems = validate_collectives(schedule);
  for (Problem& problem : validate_messages(schedule)) problems.push_back(std::move(problem));
  for (Problem& problem : validate_waits(schedule)) problems.push_back(std::move(problem));
  return sort_by_place(std::move(problems));
}

}  // namespace bubblescope::inline sim
