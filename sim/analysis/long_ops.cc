// Counts long ops by worker.
#include "sim/analysis/long_ops.h"

#include <cstddef>
#include <iterator>
#include <map>
#include <set>
#include <utility>

namespace bubblescope::inline sim {

namespace {

constexpr double kNearlyAll = 0.9;

}  // namespace

LongOps describe_long_ops(const std::vector<OpSample>& samples, std::vector<bool> are_long,
                          const std::vector<double>& excess) {
  LongOps found;
  found.are = std::move(are_long);
  std::map<Worker, std::vector<std::size_t>> steps_of;  // of each long op
  double long_time = 0;
  double usual_time = 0;
  for (std::size_t at = 0; at < samples.size(); ++at) {
    if (!found.are[at]) continue;
    const OpSample& sample = samples[at];
    ++found.count;
    steps_of[worker_of(sample)].push_back(sample.step);
    long_time += sample.time;
    usual_time += sample.time / excess[at];
  }
  if (usual_time > 0) found.factor = long_time / usual_time;
  for (const auto& [worker, steps] : steps_of)
    if (static_cast<double>(steps.size()) >= kNearlyAll * static_cast<double>(found.count)) {
      found.worker = worker;
      found.steps = std::ssize(std::set<std::size_t>(steps.begin(), steps.end()));
    }
  return found;
}

}  // namespace bubblescope::inline sim
