// Mends slow workers, those that hide each other together.
#include "sim/analysis/worker_causes.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "sim/analysis/slow_steps.h"
#include "sim/analysis/slow_workers.h"

namespace bubblescope::inline sim {

namespace {

constexpr std::size_t kMaxSingleWorkers = 3;  ///< that are causes of their own

}  // namespace

void add_slow_workers(CauseList& causes, const CauseEvidence& evidence) {
  const std::vector<Cause>& slow = evidence.slow_workers;
  const auto clear_end = std::find_if(
      slow.begin(), slow.end(), [](const Cause& worker) { return worker.factor <= kClearlySlow; });
  const std::vector<Cause> clear(slow.begin(), clear_end);
  for (std::size_t at = clear.size(); at < slow.size() && at < kMaxSingleWorkers; ++at)
    causes.add(slow[at], evidence.mend_worker(slow[at]));
  if (clear.empty()) return;
  std::vector<MendedCause> singles;
  for (std::size_t at = 0; at < clear.size() && at < kMaxSingleWorkers; ++at)
    singles.push_back({clear[at], evidence.mend_worker(clear[at])});
  const Cause all = join_workers(clear, evidence.steps.front().front().program.ranks);
  const Mend mend = evidence.mend_worker(all);
  causes.add_joined(singles, {all, mend});
  causes.take_as_base(mend);
}

void add_workers_slow_at_times(CauseList& causes, const CauseEvidence& evidence) {
  std::size_t count = 0;
  for (const SlowSteps& slow : find_slow_steps(evidence.steps, causes.base())) {
    Cause cause{CauseKind::kWorker, slow.worker.replica, slow.worker.rank};
    if (evidence.is_slow(slow.worker) || count == kMaxSingleWorkers ||
        (slow.grows && evidence.has_drifted(slow.worker)))
      continue;
    cause.factor = slow.factor;
    cause.steps = slow.steps;
    cause.all_steps = std::ssize(evidence.steps);
    cause.is_at_times = true;
    cause.grows = slow.grows;
    const Mend mend = with_usual_pace(evidence.steps, slow);
    if (!causes.add(cause, mend)) continue;
    causes.take_as_base(mend);
    ++count;
  }
}

}  // namespace bubblescope::inline sim
