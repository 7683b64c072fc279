// After edges, sorted by the ops that wait.
//   after: 1F1 after 0B0, 1F1 after 2F0      of(1F1) = {0B0, 2F0}
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "sim/ir/depend.h"
#include "sim/ir/program.h"
#include "sim/ir/schedule.h"

namespace bubblescope::inline sim {

/// Returns a text such as "1F1 after 0B0".
std::string to_string(const AfterEdge& edge);

/// Whether one instruction waits for the other by an after edge between two ranks: all else between
/// ranks takes a message.
inline bool is_after_edge(const Instruction& waiting, const Instruction& awaited) {
  return waiting.rank != awaited.rank && occurs_in_order(waiting.op.kind) &&
         occurs_in_order(awaited.op.kind);
}

/// The edges of a schedule that has passed validate_after(). Values stand for the ops that produce
/// them. Takes no memory if there are no edges.
class AfterEdges {
 public:
  AfterEdges(const Schedule& schedule, const ValueIndex& index);

  bool empty() const { return awaited_.empty(); }
  /// Indices of the values whose producers must end before the producer of this one starts.
  std::span<const std::size_t> of(std::size_t value) const {
    if (empty()) return {};
    return {awaited_.data() + begin_[value], begin_[value + 1] - begin_[value]};
  }

 private:
  std::vector<std::size_t> begin_;  ///< [value]: its first entry in awaited_; and the end
  std::vector<std::size_t> awaited_;
};

/// Throws Error if the schedule has after edges or side stages: `format` cannot express them.
void refuse_after_edges(const Schedule& schedule, const std::string& format);

/// Throws Error if the schedule's stages are a graph: `format` cannot express it.
void refuse_graph(const Schedule& schedule, const std::string& format);

}  // namespace bubblescope::inline sim
