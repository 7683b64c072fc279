// The ready units of one rank, in the order in which it prefers them, as far as its memory allows.
//
// Units that add equal memory form a group. The bound forbids all of a group, or those behind some
// place of the order, so that a choice looks at every group once, and at no unit that is forbidden:
//
//   order 0F0 0F1 0B0 0F2, memory full:  all forwards are skipped at once, and 0B0 is chosen
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "sim/engine/memory_bound.h"
#include "sim/engine/ready_units.h"

namespace bubblescope::inline sim {

class ReadyChoices {
 public:
  /// The units of a rank in its order; `priority` is that of ReadyRules. None is ready.
  ReadyChoices(std::span<const ReadyUnit> units, std::span<const std::int64_t> priority);

  /// A unit becomes ready, or is no longer there. Named by its place in the order.
  void add(std::uint32_t place) { set(place, preference_[place]); }
  void remove(std::uint32_t place) { set(place, kNone); }

  /// The index of a place among all, the preferred ones first; and the reverse.
  std::uint32_t preference_of(std::uint32_t place) const { return preference_[place]; }
  std::uint32_t place_of(std::uint32_t preference) const {
    return place_of_preference_[preference];
  }

  /// The place of the ready unit that the rank prefers among those that the bound allows.
  std::optional<std::uint32_t> find(const MemoryBound& memory) const;

 private:
  static constexpr std::uint32_t kNone = 0xffffffffu;

  /// Units that add equal memory: a range of slots, in which their places ascend.
  struct Group {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
    MemoryStep memory;
  };

  void group_units(std::span<const ReadyUnit> units);
  void set(std::uint32_t place, std::uint32_t preference);
  std::uint32_t best_in(std::uint32_t begin, std::uint32_t end) const;
  std::uint32_t best_allowed(const Group& group, const MemoryBound& memory) const;

  std::vector<std::uint32_t> place_of_preference_;  ///< the best first
  std::vector<std::uint32_t> preference_;           ///< [place]: its index there
  std::vector<Group> groups_;
  std::vector<std::uint32_t> group_of_;  ///< [place]
  std::vector<std::uint32_t> slots_;     ///< the places, one group after the other
  std::vector<std::uint32_t> slot_of_;   ///< [place]
  /// A tree of minima over the preferences of what is ready, by slot; node n has the children 2 n
  /// and 2 n + 1.
  std::vector<std::uint32_t> best_;
  std::set<std::pair<std::uint32_t, std::uint32_t>> heads_;  ///< the best of each group, its number
};

}  // namespace bubblescope::inline sim
