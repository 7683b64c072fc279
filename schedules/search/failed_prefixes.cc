// Finds prefixes that dominate others.
#include "schedules/search/failed_prefixes.h"

#include <algorithm>
#include <utility>

namespace bubblescope::schedules {

namespace {

constexpr std::int64_t kMaxStoredTimes = 4'000'000;  ///< times, over all failures: 32 MB plus keys

template <class Number>
void append_bytes(std::string& key, Number number) {
  key.append(reinterpret_cast<const char*>(&number), sizeof number);
}

/// The rows of an op and of the consumer of its result.
struct ResultRows {
  std::size_t producer;
  std::size_t consumer;
};

/// Appends when each result that is not yet used becomes available.
void append_results(std::vector<Nanos>& times, const SearchProblem& problem,
                    const Progress& progress, const ResultRows& rows) {
  const std::size_t stage = rows.consumer / kSteps;
  const Nanos free = progress.free[problem.rank_of_stage[stage]];
  const bool forward = rows.consumer > rows.producer;
  const Nanos latency = (forward ? problem.forward_latency : problem.backward_latency)[stage];
  for (std::int32_t n = progress.count[rows.consumer]; n < progress.count[rows.producer]; ++n)
    times.push_back(std::max(
        free,
        latency + progress.end[rows.producer * static_cast<std::size_t>(problem.microbatches) +
                               static_cast<std::size_t>(n)]));
}

}  // namespace

FailedPrefixes::Prefix FailedPrefixes::describe(const SearchProblem& problem,
                                                const Progress& progress,
                                                const std::vector<unsigned long long>& refused) {
  Prefix prefix;
  for (const std::int32_t count : progress.count)
    append_bytes(prefix.ops, static_cast<std::uint16_t>(count));
  for (const unsigned long long mask : refused) append_bytes(prefix.ops, mask);
  prefix.times = progress.free;
  for (std::int32_t stage = 0; stage + 1 < problem.stages(); ++stage) {
    const auto forward = static_cast<std::size_t>(stage) * kSteps;
    append_results(prefix.times, problem, progress, {forward, forward + kSteps});
    append_results(prefix.times, problem, progress, {forward + kSteps + 1, forward + 1});
  }
  return prefix;
}

bool FailedPrefixes::dominates(const Prefix& prefix) const {
  const auto found = failures_.find(prefix.ops);
  if (found == failures_.end()) return false;
  return std::any_of(found->second.begin(), found->second.end(), [&](const auto& failed) {
    return std::equal(failed.begin(), failed.end(), prefix.times.begin(),
                      [](Nanos earlier, Nanos later) { return earlier <= later; });
  });
}

void FailedPrefixes::add(Prefix prefix) {
  if (kept_ >= kMaxStoredTimes) return;
  kept_ += static_cast<std::int64_t>(prefix.times.size());
  std::vector<std::vector<Nanos>>& known = failures_[std::move(prefix.ops)];
  std::erase_if(known, [&](const auto& failed) {
    return std::equal(prefix.times.begin(), prefix.times.end(), failed.begin(),
                      [](Nanos earlier, Nanos later) { return earlier <= later; });
  });
  known.push_back(std::move(prefix.times));
}

}  // namespace bubblescope::schedules
