// A necessary condition for finishing a partial step in time, used for lower bounds and to prune
// the exact search.
#pragma once

#include <optional>
#include <vector>

#include "schedules/search/search_problem.h"

namespace bubblescope::schedules {

/// The ops that every rank has run so far, timed. A row is stage * kSteps + step.
struct Progress {
  explicit Progress(const SearchProblem& problem);

  std::vector<std::int32_t> count;  ///< [row]: ops run
  std::vector<Nanos> end;           ///< [row * microbatches + n]: when they ended
  std::vector<Nanos> free;          ///< [rank]: when its last op ended
};

/// The start of each rank's first op in every order that wastes no time. Empty if it depends on the
/// order: if a rank's first stage comes after a stage that is not its own rank's first.
std::optional<std::vector<Nanos>> compute_first_starts(const SearchProblem& problem);

/// Tests one value of the longest span (or of the step, if the problem counts from its start).
class DeadlineTest {
 public:
  /// `problem` must outlive the test.
  explicit DeadlineTest(const SearchProblem& problem);

  /// Sets the value to test: O(ops).
  void set_value(Nanos value);

  /// False if no order with this beginning keeps the value. Every op can start when its inputs, the
  /// previous op of its kind and the gradients that must free its memory are available, and must
  /// end in time for all ops that wait for it. Each rank in turn must meet all these times,
  /// although it may preempt ops (earliest due date first is then optimal). O(ops left * tokens).
  bool passes(const Progress& progress);

 private:
  /// An op that must end before a forward can start, to free memory for it.
  struct MemoryEdge {
    std::size_t row = 0;
    std::int32_t lead = 0;  ///< forward n waits for op n - lead
  };

  /// The remaining ops of one kind and stage on a rank.
  struct Queue {
    std::size_t row = 0;
    std::int32_t next = 0;
    Nanos left = 0;  ///< of the next op
  };

  void add_memory_edges(std::int32_t rank);
  template <class Visit>
  void for_each_awaited(std::size_t row, std::int32_t microbatch, Visit visit) const;
  void set_earliest(const Progress& progress);
  Nanos compute_earliest_start(const Progress& progress, std::size_t row,
                               std::int32_t microbatch) const;
  void set_due();
  void tighten(std::size_t row, std::int32_t microbatch);
  std::vector<Queue> collect_queues(const Progress& progress, std::int32_t rank) const;
  bool test_rank(const Progress& progress, std::int32_t rank) const;

  std::size_t at(std::size_t row, std::int32_t microbatch) const {
    return row * static_cast<std::size_t>(problem_.microbatches) +
           static_cast<std::size_t>(microbatch);
  }
  Nanos duration(std::size_t row) const { return problem_.duration[row / kSteps][row % kSteps]; }

  const SearchProblem& problem_;
  std::vector<std::size_t> rows_forward_;  ///< all rows, producers before consumers
  /// [stage]: the ops whose memory its forwards wait for.
  std::vector<std::vector<MemoryEdge>> room_after_;
  std::vector<Nanos> deadline_base_;  ///< [rank]: its deadline, less the value
  Nanos value_ = 0;
  std::vector<Nanos> end_;  ///< [row * microbatches + n]: earliest end, or the actual one
  std::vector<Nanos> due_;  ///< same index: latest end
};

/// The smallest value that passes the test before anything has run: no order is shorter. Bisects
/// between `reached`, which some order reaches, and half of it or less: O(ops log value).
Nanos value_lower_bound(const SearchProblem& problem, Nanos reached);

}  // namespace bubblescope::schedules
