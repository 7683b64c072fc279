// Groups after edges by the op that waits.
#include "sim/ir/after_edges.h"

#include "sim/ir/counted.h"
#include "sim/ir/error.h"

namespace bubblescope::inline sim {

std::string to_string(const AfterEdge& edge) {
  return to_string(edge.op) + " after " + to_string(edge.awaited);
}

AfterEdges::AfterEdges(const Schedule& schedule, const ValueIndex& index) {
  if (schedule.after.empty()) return;
  begin_.assign(index.size() + 1, 0);
  for (const AfterEdge& edge : schedule.after) ++begin_[index(edge.op) + 1];
  for (std::size_t value = 0; value < index.size(); ++value) begin_[value + 1] += begin_[value];
  awaited_.resize(schedule.after.size());
  std::vector<std::size_t> next(begin_.begin(), begin_.end() - 1);
  for (const AfterEdge& edge : schedule.after)
    awaited_[next[index(edge.op)]++] = index(edge.awaited);
}

void refuse_graph(const Schedule& schedule, const std::string& format) {
  if (!schedule.graph.is_chain())
    throw Error(format + " cannot express stages that are not a chain, as those of " +
                schedule.name + "; write it as native");
}

void refuse_after_edges(const Schedule& schedule, const std::string& format) {
  if (schedule.side_stages > 0)
    throw Error(format + " cannot express stages beside the chain, and " + schedule.name + " has " +
                std::to_string(schedule.side_stages) + "; write it as native");
  if (schedule.after.empty()) return;
  const std::size_t others = schedule.after.size() - 1;
  throw Error(
      format + " cannot express that an op waits for another beyond the data flow, and " +
      schedule.name + " has '" + to_string(schedule.after.front()) + "'" +
      (others == 0 ? "" : " and " + counted(static_cast<std::int64_t>(others), "more such edge")) +
      "; write it as native");
}

}  // namespace bubblescope::inline sim
