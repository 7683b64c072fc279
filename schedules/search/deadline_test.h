// Can what is left of a step still end in time? A necessary condition, for lower bounds and for
// cutting off what an exact search need not try.
#pragma once

#include <optional>
#include <vector>

#include "schedules/search/search_problem.h"

namespace bubblescope {

/// The ops that every rank has begun with, timed. A row is stage * kSteps + step.
struct Progress {
  explicit Progress(const SearchProblem& problem);

  std::vector<std::int32_t> count;  ///< [row]: ops run
  std::vector<Nanos> end;           ///< [row * microbatches + n]: when they ended
  std::vector<Nanos> free;          ///< [rank]: when its last op ended
};

/// When each rank's first op starts in every order that wastes no time; empty where that depends on
/// the order: where a rank's first stage comes behind a stage that is not its own rank's first.
std::optional<std::vector<Nanos>> first_starts(const SearchProblem& problem);

/// For one value of the longest span (or of the step, where the problem counts from its start).
class DeadlineTest {
 public:
  /// `problem` must outlive the test.
  explicit DeadlineTest(const SearchProblem& problem);

  /// Sets the value that is asked about: O(ops).
  void set_value(Nanos value);

  /// False if no order that begins so keeps to the value: every op can start when its inputs, the
  /// op of its kind before it and the gradients that must free its memory are there, must end in
  /// time for all that waits for it, and one rank after the other must keep all these times, though
  /// it may interrupt ops (earliest due date first, which is best then). O(ops left * tokens).
  bool passes(const Progress& progress);

 private:
  /// An op that must end before a forward can start, so that there is memory for it.
  struct MemoryEdge {
    std::size_t row = 0;
    std::int32_t lead = 0;  ///< forward n waits for op n - lead
  };

  /// The ops of one kind and stage that a rank has left.
  struct Queue {
    std::size_t row = 0;
    std::int32_t next = 0;
    Nanos left = 0;  ///< of the next op
  };

  void add_memory_edges(std::int32_t rank);
  void set_earliest(const Progress& progress);
  Nanos earliest_start(const Progress& progress, std::size_t row, std::int32_t microbatch) const;
  void set_due();
  void tighten(std::size_t row, std::int32_t microbatch);
  std::vector<Queue> queues_of(const Progress& progress, std::int32_t rank) const;
  bool rank_passes(const Progress& progress, std::int32_t rank) const;

  std::size_t at(std::size_t row, std::int32_t microbatch) const {
    return row * static_cast<std::size_t>(problem_.microbatches) +
           static_cast<std::size_t>(microbatch);
  }
  Nanos duration(std::size_t row) const { return problem_.duration[row / kSteps][row % kSteps]; }

  const SearchProblem& problem_;
  std::vector<std::size_t> rows_forward_;            ///< all rows, producers before consumers
  std::vector<std::vector<MemoryEdge>> room_after_;  ///< [stage]: what its forwards wait for
  std::vector<Nanos> deadline_base_;                 ///< [rank]: its deadline, less the value
  Nanos value_ = 0;
  std::vector<Nanos> end_;  ///< [row * microbatches + n]: earliest, or as it was
  std::vector<Nanos> due_;  ///< the same index: latest end
};

/// The least value that passes the test before anything has run: no order is shorter. Looks between
/// a value that is known to be reached and half of it or less, by halving: O(ops log value).
Nanos least_value(const SearchProblem& problem, Nanos reached);

}  // namespace bubblescope
