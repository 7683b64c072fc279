// Collects samples, and shortens ops.
#include "sim/analysis/cause_evidence.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

namespace bubblescope::inline sim {

CauseEvidence::CauseEvidence(std::span<const ReplicatedStep> measured)
    : steps(measured),
      samples(collect_samples(measured, std::numeric_limits<std::int32_t>::max())),
      noise(fit_noise(samples)),
      chance(find_chance(samples, noise.noise)),
      drift(find_drift(samples)) {
  if (steps.front().size() < 2) return;
  workers.emplace(steps);
  slow_workers = workers->slow(chance.between_replicas);
}

bool CauseEvidence::has_drifted(const Worker& worker) const {
  return drift &&
         std::find(drift->workers.begin(), drift->workers.end(), worker) != drift->workers.end();
}

bool CauseEvidence::is_slow(const Worker& worker) const {
  return std::any_of(slow_workers.begin(), slow_workers.end(),
                     [&](const SlowWorker& slow) { return slow.worker == worker; });
}

Counterfactual CauseEvidence::shorten(std::span<const double> factors) const {
  using OpKey = std::tuple<std::size_t, std::int32_t, std::int32_t, OpKind>;
  std::vector<std::map<OpKey, double>> of_steps(steps.size());
  for (std::size_t at = 0; at < samples.size(); ++at) {
    const OpSample& one = samples[at];
    of_steps[one.step][{one.replica, one.stage, one.microbatch, one.kind}] = factors[at];
  }
  return [of_steps = std::move(of_steps)](std::size_t at, const ReplicatedStep& step,
                                          std::vector<Durations> durations) {
    for (std::size_t replica = 0; replica < step.size(); ++replica)
      step[replica].for_each_compute([&](InstructionId id, const Instruction& one) {
        const double factor =
            of_steps[at].at({replica, one.op.stage, one.op.microbatch, one.op.kind});
        durations[replica][id] = std::llround(static_cast<double>(durations[replica][id]) / factor);
      });
    return durations;
  };
}

}  // namespace bubblescope::inline sim
