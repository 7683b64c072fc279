// Walking from rank to rank with the difference of their clocks.
#include "traces/align_clocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "sim/ir/units.h"

namespace bubblescope {

namespace {

constexpr Nanos kExact = 10'000;  ///< clocks of one host, and ends of slices, are no better

bool is_fault(const std::optional<Nanos>& gap) { return gap && *gap < -kExact; }

/// How far the clock of `to` is ahead of that of `from`; nothing where a constant difference does
/// not explain the gaps, or where nothing is wrong.
std::optional<Nanos> difference(const ClockGaps& gaps, std::int32_t from, std::int32_t to) {
  const std::optional<Nanos> there = gaps.least(from, to);
  const std::optional<Nanos> back = gaps.least(to, from);
  if (!there || !back || !(is_fault(there) || is_fault(back))) return {};
  if (*there + *back < 0) return {};
  return (*there - *back) / 2;
}

bool are_linked(const ClockGaps& gaps, std::int32_t left, std::int32_t right) {
  return gaps.least(left, right).has_value() || gaps.least(right, left).has_value();
}

std::vector<Nanos> shifts(const ClockGaps& gaps) {
  std::vector<std::optional<Nanos>> shift(static_cast<std::size_t>(gaps.ranks()));
  for (std::int32_t root = 0; root < gaps.ranks(); ++root) {
    if (shift[root]) continue;
    shift[root] = 0;
    std::deque<std::int32_t> reached{root};
    for (; !reached.empty(); reached.pop_front()) {
      const std::int32_t from = reached.front();
      for (std::int32_t to = 0; to < gaps.ranks(); ++to) {
        if (shift[to] || !are_linked(gaps, from, to)) continue;
        shift[to] = *shift[from] - difference(gaps, from, to).value_or(0);
        reached.push_back(to);
      }
    }
  }
  std::vector<Nanos> found;
  for (const std::optional<Nanos>& each : shift) found.push_back(each.value_or(0));
  return found;
}

/// What is left between two ranks after the correction.
struct Fault {
  Nanos gap = 0;
  std::int32_t from = 0;
  std::int32_t to = 0;
};

std::optional<Fault> worst_fault(const ClockGaps& gaps, const std::vector<Nanos>& shift) {
  std::optional<Fault> worst;
  for (std::int32_t from = 0; from < gaps.ranks(); ++from)
    for (std::int32_t to = 0; to < gaps.ranks(); ++to) {
      const std::optional<Nanos> least = gaps.least(from, to);
      if (!least) continue;
      const Nanos gap = *least + shift[to] - shift[from];
      if (is_fault(gap) && (!worst || gap < worst->gap)) worst = Fault{gap, from, to};
    }
  return worst;
}

}  // namespace

ClockGaps::ClockGaps(std::int32_t ranks)
    : ranks_(ranks), least_(static_cast<std::size_t>(ranks) * static_cast<std::size_t>(ranks)) {}

std::size_t ClockGaps::index(std::int32_t from, std::int32_t to) const {
  return static_cast<std::size_t>(from) * static_cast<std::size_t>(ranks_) +
         static_cast<std::size_t>(to);
}

void ClockGaps::add(const Program& program, const Timeline& timeline) {
  for (InstructionId id = 0; id < program.size(); ++id) {
    if (is_message(program.instructions[id])) continue;
    for (const InstructionId awaited : program.dependencies_of(id)) {
      if (!is_message(program.instructions[awaited])) continue;
      const InstructionId maker = program.dependencies_of(awaited).front();
      const Nanos gap = timeline.start[id] - timeline.end[maker];
      std::optional<Nanos>& least =
          least_[index(program.instructions[maker].rank, program.instructions[id].rank)];
      least = std::min(least.value_or(gap), gap);
    }
  }
}

ClockCorrection align_clocks(const ClockGaps& gaps) {
  ClockCorrection correction{shifts(gaps), {}};
  for (std::int32_t rank = 0; rank < gaps.ranks(); ++rank) {
    const Nanos shift = correction.shift[rank];
    if (shift == 0) continue;
    correction.notes.push_back(fmt::format(
        "the clock of rank {} was set {} by {}: by it, ops began before what they need had ended",
        rank, shift > 0 ? "forward" : "back", to_text(std::abs(shift))));
  }
  if (const std::optional<Fault> fault = worst_fault(gaps, correction.shift))
    correction.notes.push_back(fmt::format(
        "an op of rank {} begins {} before what it needs has ended on rank {}, which no shift of "
        "their clocks explains: slices that hold waiting too, or clocks that drift; idle times "
        "between these ranks are off by as much",
        fault->to, to_text(-fault->gap), fault->from));
  return correction;
}

}  // namespace bubblescope
