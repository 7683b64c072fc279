// Renumbers the replicas of each sort of cause that names some.
#include "sim/analysis/cause.h"

#include <cstddef>

#include "sim/analysis/fit_noise.h"

namespace bubblescope::inline sim {

namespace {

/// Changes the facts of a cause. Sorts that name no replica, or have the trace's number already,
/// are listed as well, so that one without an overload does not compile.
class Renumbering {
 public:
  explicit Renumbering(std::span<const std::int32_t> numbers) : numbers_(numbers) {}

  void operator()(SlowWorkers& slow) const { change_all(slow.workers); }
  void operator()(WorkerSlowAtTimes& slow) const { change(slow.worker.replica); }
  void operator()(ExposedMessages& messages) const {
    if (messages.link && messages.link->replica) change(*messages.link->replica);
  }
  void operator()(InterruptedOps& ops) const {
    if (ops.worker) change(ops.worker->replica);
  }
  void operator()(SlowerOps& ops) const { change_all(ops.workers); }
  void operator()(UnequalStage&) const {}
  void operator()(UnequalMicrobatches&) const {}
  void operator()(UnseenMessages&) const {}
  void operator()(ExposedCollective&) const {}
  void operator()(LateLaunches&) const {}
  void operator()(LongGaps&) const {}
  void operator()(SlowOnMostRanks&) const {}
  void operator()(ReplicasThatBeginLate&) const {}
  void operator()(UnevenOps&) const {}

 private:
  void change(std::int32_t& replica) const {
    replica = numbers_[static_cast<std::size_t>(replica)];
  }
  void change_all(std::vector<Worker>& workers) const {
    for (Worker& worker : workers) change(worker.replica);
  }

  std::span<const std::int32_t> numbers_;
};

}  // namespace

Cause with_replica_numbers(Cause cause, std::span<const std::int32_t> numbers) {
  std::visit(Renumbering(numbers), cause.facts);
  return cause;
}

}  // namespace bubblescope::inline sim
