// Counts long ops by worker.
#include "sim/analysis/long_ops.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace bubblescope::inline sim {

namespace {

constexpr double kNearlyAll = 0.9;
constexpr std::size_t kMinSteps = 4;  ///< that tell whether the same ops are long in all
constexpr double kFew = 0.1;
constexpr double kMajority = 0.5;     ///< a group is long as a whole if more of its ops are
constexpr double kTogether = 2;       ///< times as often as by chance
constexpr double kOutsideChance = 3;  ///< in standard deviations

struct Count {
  double long_ops = 0;
  double all = 0;
};

/// Whether few of the long ops are in groups most of which are long. The keys name the groups.
template <class KeyOf>
bool are_in_few_groups(const std::vector<OpSample>& samples, const std::vector<bool>& are_long,
                       KeyOf key_of) {
  std::map<decltype(key_of(samples.front())), Count> groups;
  double all_long = 0;
  for (std::size_t at = 0; at < samples.size(); ++at) {
    Count& count = groups[key_of(samples[at])];
    count.long_ops += are_long[at] ? 1 : 0;
    ++count.all;
    all_long += are_long[at] ? 1 : 0;
  }
  double grouped = 0;
  for (const auto& [_, count] : groups)
    if (count.all > 1 && count.long_ops > kMajority * count.all) grouped += count.long_ops;
  return grouped <= kFew * all_long;
}

/// Whether an op is long no more often where another op of its micro-batch and stage is.
bool are_long_alone(const std::vector<OpSample>& samples, const std::vector<bool>& are_long) {
  using Place = std::tuple<std::size_t, std::size_t, std::int32_t, std::int32_t>;
  std::map<Place, Count> places;
  Count of_all;
  for (std::size_t at = 0; at < samples.size(); ++at) {
    const OpSample& one = samples[at];
    Count& count = places[{one.step, one.replica, one.stage, one.microbatch}];
    for (Count* const each : {&count, &of_all}) {
      each->long_ops += are_long[at] ? 1 : 0;
      ++each->all;
    }
  }
  const double chance = of_all.long_ops / of_all.all;
  double pairs = 0;
  double expected = 0;
  for (const auto& [_, count] : places) {
    pairs += count.long_ops * (count.long_ops - 1) / 2;
    expected += chance * chance * count.all * (count.all - 1) / 2;
  }
  return pairs <= kTogether * expected + kOutsideChance * std::sqrt(expected) + 1;
}

}  // namespace

LongOps describe_long_ops(const std::vector<OpSample>& samples, std::vector<bool> are_long,
                          const std::vector<double>& excess) {
  LongOps found;
  found.is_long = std::move(are_long);
  std::map<Worker, std::vector<std::size_t>> steps_of;  // of each long op
  double long_time = 0;
  double usual_time = 0;
  for (std::size_t at = 0; at < samples.size(); ++at) {
    if (!found.is_long[at]) continue;
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

bool are_scattered(const std::vector<OpSample>& samples, const std::vector<bool>& are_long) {
  const auto step_of = [](const OpSample& one) {
    return std::tuple(one.step, one.replica, one.rank);
  };
  const auto op_of = [](const OpSample& one) {
    return std::tuple(one.replica, one.stage, one.microbatch, one.kind);
  };
  std::set<std::size_t> steps;
  for (const OpSample& one : samples) steps.insert(one.step);
  return steps.size() >= kMinSteps && are_in_few_groups(samples, are_long, step_of) &&
         are_in_few_groups(samples, are_long, op_of) && are_long_alone(samples, are_long);
}

}  // namespace bubblescope::inline sim
