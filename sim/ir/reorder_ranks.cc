// Drafts a Program anew from the instructions of another one.
#include "sim/ir/reorder_ranks.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <variant>

#include "sim/ir/program_draft.h"

namespace bubblescope::inline sim {

std::variant<ReorderedProgram, Deadlock> reorder_ranks(
    const Program& given, const std::vector<std::vector<InstructionId>>& orders) {
  std::vector<InstructionId> moved_here(given.size());
  std::iota(moved_here.begin(), moved_here.end(), InstructionId{0});
  std::vector<InstructionId> place_of = moved_here;
  for (const std::vector<InstructionId>& order : orders) {
    std::vector<InstructionId> places = order;
    std::sort(places.begin(), places.end());
    for (std::size_t at = 0; at < order.size(); ++at) {
      moved_here[places[at]] = order[at];
      place_of[order[at]] = places[at];
    }
  }
  ProgramDraft draft(given.ranks, given.size());
  for (std::size_t lane = static_cast<std::size_t>(given.ranks); lane < given.lanes.size(); ++lane)
    draft.add_lane(given.lanes[lane]);
  for (const InstructionId id : moved_here) {
    draft.add(given.instructions[id]);
    for (const InstructionId awaited : given.dependencies_of(id)) draft.wait_for(place_of[awaited]);
  }
  std::variant<SortedDraft, Deadlock> sorted = std::move(draft).sort();
  if (auto* const deadlock = std::get_if<Deadlock>(&sorted)) return std::move(*deadlock);
  auto& [program, draft_ids] = std::get<SortedDraft>(sorted);
  ReorderedProgram reordered{std::move(program), {}};
  for (const InstructionId id : draft_ids) reordered.former.push_back(moved_here[id]);
  return reordered;
}

}  // namespace bubblescope::inline sim
