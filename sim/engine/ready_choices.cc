// A tree of minima over slots answers what is best in the allowed part of a group.
#include "sim/engine/ready_choices.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace bubblescope::inline sim {

ReadyChoices::ReadyChoices(std::span<const ReadyUnit> units, std::span<const std::int64_t> priority)
    : place_of_preference_(units.size()),
      preference_(units.size()),
      best_(2 * units.size(), kNone) {
  std::iota(place_of_preference_.begin(), place_of_preference_.end(), 0u);
  std::stable_sort(place_of_preference_.begin(), place_of_preference_.end(),
                   [&](std::uint32_t left, std::uint32_t right) {
                     return priority[units[left].first] < priority[units[right].first];
                   });
  for (std::uint32_t at = 0; at < units.size(); ++at) preference_[place_of_preference_[at]] = at;
  group_units(units);
}

void ReadyChoices::group_units(std::span<const ReadyUnit> units) {
  const auto memory_of = [&](std::uint32_t place) {
    return std::tie(units[place].memory.peak, units[place].memory.net);
  };
  slots_.resize(units.size());
  slot_of_.resize(units.size());
  group_of_.resize(units.size());
  std::iota(slots_.begin(), slots_.end(), 0u);
  std::stable_sort(slots_.begin(), slots_.end(), [&](std::uint32_t left, std::uint32_t right) {
    return memory_of(left) < memory_of(right);
  });
  for (std::uint32_t slot = 0; slot < slots_.size(); ++slot) {
    const std::uint32_t place = slots_[slot];
    if (slot == 0 || memory_of(slots_[slot - 1]) != memory_of(place))
      groups_.push_back({slot, slot, units[place].memory});
    groups_.back().end = slot + 1;
    slot_of_[place] = slot;
    group_of_[place] = static_cast<std::uint32_t>(groups_.size() - 1);
  }
}

void ReadyChoices::set(std::uint32_t place, std::uint32_t preference) {
  const std::uint32_t number = group_of_[place];
  const Group& group = groups_[number];
  const std::uint32_t before = best_in(group.begin, group.end);
  std::size_t node = slots_.size() + slot_of_[place];
  best_[node] = preference;
  while (node > 1) {
    node /= 2;
    best_[node] = std::min(best_[2 * node], best_[2 * node + 1]);
  }
  const std::uint32_t after = best_in(group.begin, group.end);
  if (after == before) return;
  if (before != kNone) heads_.erase({before, number});
  if (after != kNone) heads_.emplace(after, number);
}

std::optional<std::uint32_t> ReadyChoices::find(const MemoryBound& memory) const {
  std::uint32_t best = kNone;
  for (const auto& [head, number] : heads_) {
    if (head >= best) break;
    best = std::min(best, best_allowed(groups_[number], memory));
  }
  if (best == kNone) return {};
  return place_of_preference_[best];
}

std::uint32_t ReadyChoices::best_allowed(const Group& group, const MemoryBound& memory) const {
  const std::size_t end = memory.end_of_allowed(group.memory);
  const auto first = slots_.begin() + group.begin;
  const auto count = std::lower_bound(first, slots_.begin() + group.end, end) - first;
  return best_in(group.begin, group.begin + static_cast<std::uint32_t>(count));
}

std::uint32_t ReadyChoices::best_in(std::uint32_t begin, std::uint32_t end) const {
  std::uint32_t best = kNone;
  std::size_t left = slots_.size() + begin;
  std::size_t right = slots_.size() + end;
  for (; left < right; left /= 2, right /= 2) {
    if (left % 2 == 1) best = std::min(best, best_[left++]);
    if (right % 2 == 1) best = std::min(best, best_[--right]);
  }
  return best;
}

}  // namespace bubblescope::inline sim
