// Makes slow workers as fast as usual, those that hide each other together.
#include "sim/analysis/worker_causes.h"

#include <vector>

#include "sim/analysis/slow_steps.h"
#include "sim/analysis/slow_workers.h"

namespace bubblescope::inline sim {

namespace {

constexpr std::size_t kMaxSingleWorkers = 3;  ///< that are causes of their own

/// Adds workers as one cause if they hide each other, else one by one. Returns the
/// counterfactual of all.
Counterfactual add_together(CauseList& causes, const CauseEvidence& evidence,
                            const std::vector<SlowWorker>& workers) {
  const auto make_cause = [&](const std::vector<SlowWorker>& some) -> RemovableCause {
    const SlowWorkers facts = join_workers(some, evidence.steps.front().front().program.ranks);
    return {{facts}, evidence.workers->with_usual_speed(facts.workers)};
  };
  std::vector<RemovableCause> singles;
  for (std::size_t at = 0; at < workers.size() && at < kMaxSingleWorkers; ++at)
    singles.push_back(make_cause({workers[at]}));
  const RemovableCause all = make_cause(workers);
  causes.add_joined(singles, all);
  return all.counterfactual;
}

}  // namespace

void add_slow_workers(CauseList& causes, const CauseEvidence& evidence) {
  if (evidence.slow_workers.empty()) return;
  causes.take_as_base(CauseKind::kWorker, add_together(causes, evidence, evidence.slow_workers));
}

void add_workers_slow_at_times(CauseList& causes, const CauseEvidence& evidence) {
  std::size_t count = 0;
  for (const SlowSteps& slow : find_slow_steps(evidence.steps, causes.base())) {
    if (evidence.is_slow(slow.worker) || count == kMaxSingleWorkers ||
        (slow.grows && evidence.has_drifted(slow.worker)))
      continue;
    const WorkerSlowAtTimes facts{slow.worker, slow.factor, slow.steps, slow.grows};
    const Counterfactual counterfactual = with_usual_time(slow);
    if (!causes.add({facts}, counterfactual)) continue;
    causes.take_as_base(CauseKind::kWorker, counterfactual);
    ++count;
  }
}

}  // namespace bubblescope::inline sim
