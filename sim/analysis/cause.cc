// Renumbers the replicas of each sort of cause that names some.
#include "sim/analysis/cause.h"

#include <cstddef>

#include "sim/analysis/fit_noise.h"

namespace bubblescope::inline sim {

Cause with_replica_numbers(Cause cause, std::span<const std::int32_t> numbers) {
  const auto change = [&](std::int32_t& replica) {
    replica = numbers[static_cast<std::size_t>(replica)];
  };
  const auto change_all = [&](std::vector<Worker>& workers) {
    for (Worker& worker : workers) change(worker.replica);
  };
  CauseFacts& facts = cause.facts;
  if (auto* const slow = std::get_if<SlowWorkers>(&facts)) change_all(slow->workers);
  if (auto* const slow = std::get_if<WorkerSlowAtTimes>(&facts)) change(slow->worker.replica);
  if (auto* const messages = std::get_if<ExposedMessages>(&facts))
    if (messages->link && messages->link->replica) change(*messages->link->replica);
  if (auto* const ops = std::get_if<InterruptedOps>(&facts))
    if (ops->worker) change(ops->worker->replica);
  if (auto* const ops = std::get_if<SlowerOps>(&facts)) change_all(ops->workers);
  return cause;
}

}  // namespace bubblescope::inline sim
