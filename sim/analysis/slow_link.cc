// Compares the medians of all links.
#include "sim/analysis/slow_link.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <vector>

#include "sim/analysis/fit_messages.h"
#include "sim/analysis/link_chance.h"
#include "sim/ir/quantile.h"

namespace bubblescope::inline sim {

namespace {

constexpr std::size_t kMinMessages = 4;
constexpr Nanos kSlow = 2;             ///< times the usual
constexpr std::size_t kQuickest = 25;  ///< %: if they are slow as well, it is not by chance

/// Whether three quarters of these messages take so long: the median alone may by chance, where
/// messages vary by more than that.
bool are_slow(const std::vector<Nanos>& own, Nanos usual) {
  return own.size() >= kMinMessages && quantile(own, kQuickest) >= kSlow * usual;
}

}  // namespace

std::optional<SlowLink> find_slow_link(std::span<const ReplicatedStep> steps) {
  const std::map<ReplicaLink, std::vector<Nanos>> times = collect_link_times(steps);
  std::vector<Nanos> all;
  for (const auto& [link, own] : times) all.insert(all.end(), own.begin(), own.end());
  if (all.empty()) return {};
  const Nanos usual = quantile(all, 50);
  std::optional<SlowLink> slowest;
  for (const auto& [link, own] : times) {
    const Nanos time = quantile(own, 50);
    const Nanos min_time = slowest ? slowest->time + 1 : 1;
    if (!are_slow(own, usual) || time < min_time) continue;
    if (!differs_beyond_chance(own, all, times.size())) continue;
    slowest =
        SlowLink{static_cast<std::int32_t>(link.replica), link.from, link.to, false, time, usual};
  }
  if (!slowest) return {};
  const auto is_slow = [&](std::size_t replica, std::int32_t from, std::int32_t to) {
    const auto own = times.find({replica, from, to});
    return own != times.end() && are_slow(own->second, usual);
  };
  slowest->both_ways =
      is_slow(static_cast<std::size_t>(*slowest->replica), slowest->to, slowest->from);
  bool everywhere = true;
  for (std::size_t replica = 0; replica < steps.front().size(); ++replica)
    everywhere = everywhere && is_slow(replica, slowest->from, slowest->to);
  if (everywhere) slowest->replica.reset();
  return slowest;
}

Counterfactual with_usual_link(const SlowLink& link) {
  return [link](std::size_t, const ReplicatedStep& step, std::vector<Durations> durations) {
    for (std::size_t replica = 0; replica < step.size(); ++replica) {
      if (link.replica && static_cast<std::size_t>(*link.replica) != replica) continue;
      for (InstructionId id = 0; id < durations[replica].size(); ++id) {
        const Instruction& one = step[replica].program.instructions[id];
        if (is_message(one) && std::minmax(one.rank, one.peer) == std::minmax(link.from, link.to))
          durations[replica][id] = std::min(durations[replica][id], link.usual);
      }
    }
    return durations;
  };
}

}  // namespace bubblescope::inline sim
