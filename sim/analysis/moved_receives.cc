// Keeps the longest sequence of receives that is in order between two other cells.
#include "sim/analysis/moved_receives.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

namespace bubblescope::inline sim {

namespace {

using CellKey = std::tuple<std::int32_t, std::int32_t, std::int16_t, OpKind>;

CellKey cell_key(const Op& op) { return {op.stage, op.microbatch, op.slice, op.kind}; }

/// The position of a receive: the number of other cells before it, and its index in the list.
struct Place {
  std::size_t gap = 0;
  std::size_t index = 0;
};

std::map<CellKey, Place> find_places(const RankOrder& list) {
  std::map<CellKey, Place> places;
  std::size_t gap = 0;
  for (std::size_t at = 0; at < list.size(); ++at) {
    if (is_recv(list[at].kind))
      places[cell_key(list[at])] = {gap, at};
    else
      ++gap;
  }
  return places;
}

/// Whether they have the same receives, and all other cells in the same order.
bool have_same_cells(const RankOrder& left, const RankOrder& right) {
  const auto cells_of = [](const RankOrder& list) {
    std::vector<CellKey> receives;
    std::vector<CellKey> others;
    for (const Op& op : list) (is_recv(op.kind) ? receives : others).push_back(cell_key(op));
    std::sort(receives.begin(), receives.end());
    return std::pair(std::move(receives), std::move(others));
  };
  return cells_of(left) == cells_of(right);
}

/// Whether each of some values is in one longest increasing sequence of them.
std::vector<bool> find_longest_increasing(const std::vector<std::size_t>& values) {
  constexpr auto kNone = static_cast<std::size_t>(-1);
  std::vector<std::size_t> last;  // [length - 1]: the index of the smallest value that ends one
  std::vector<std::size_t> previous(values.size(), kNone);
  for (std::size_t at = 0; at < values.size(); ++at) {
    const auto place = std::lower_bound(
        last.begin(), last.end(), values[at],
        [&](std::size_t index, std::size_t value) { return values[index] < value; });
    if (place != last.begin()) previous[at] = *std::prev(place);
    if (place == last.end())
      last.push_back(at);
    else
      *place = at;
  }
  std::vector<bool> is_in(values.size(), false);
  for (std::size_t at = last.empty() ? kNone : last.back(); at != kNone; at = previous[at])
    is_in[at] = true;
  return is_in;
}

/// [cell of `to`]: whether it stays where it is in `from`.
std::vector<bool> find_kept(const RankOrder& from, const RankOrder& to) {
  const std::map<CellKey, Place> places = find_places(from);
  std::vector<bool> kept(to.size(), true);
  std::vector<std::size_t> cells;  // receives of this gap that were in it before
  std::vector<std::size_t> indices;
  std::size_t gap = 0;
  const auto end_gap = [&] {
    const std::vector<bool> in_order = find_longest_increasing(indices);
    for (std::size_t at = 0; at < cells.size(); ++at) kept[cells[at]] = in_order[at];
    cells.clear();
    indices.clear();
    ++gap;
  };
  for (std::size_t at = 0; at < to.size(); ++at) {
    if (!is_recv(to[at].kind)) {
      end_gap();
      continue;
    }
    const auto place = places.find(cell_key(to[at]));
    kept[at] = false;
    if (place == places.end() || place->second.gap != gap) continue;
    cells.push_back(at);
    indices.push_back(place->second.index);
  }
  end_gap();
  return kept;
}

std::string cell_text(const Op& op) {
  if (op.pairing == Pairing::kAlone) return to_string(op);
  return "the pair with " + to_string(op);
}

}  // namespace

std::optional<std::vector<MovedReceive>> find_moved_receives(std::int32_t rank,
                                                             const RankOrder& from,
                                                             const RankOrder& to) {
  if (!have_same_cells(from, to)) return std::nullopt;
  const std::vector<bool> kept = find_kept(from, to);
  std::vector<MovedReceive> moves;
  std::vector<std::size_t> pending;  // indices of moves whose next cell that stays is to come
  std::map<CellKey, std::int32_t> seen;
  for (std::size_t at = 0; at < to.size(); ++at) {
    if (!kept[at]) {
      pending.push_back(moves.size());
      moves.push_back({rank, to[at], std::nullopt});
      continue;
    }
    const std::int32_t occurrence = ++seen[cell_key(to[at])];
    for (const std::size_t move : pending) {
      moves[move].before = to[at];
      moves[move].occurrence = occurrence;
    }
    pending.clear();
  }
  return moves;
}

std::string to_string(const MovedReceive& move) {
  std::string text = "rank " + std::to_string(move.rank) + ": post " + to_string(move.receive);
  if (!move.before) return text + " at the end";
  text += " before " + cell_text(*move.before);
  if (move.occurrence > 1) text += " (number " + std::to_string(move.occurrence) + " of them)";
  return text;
}

}  // namespace bubblescope::inline sim
