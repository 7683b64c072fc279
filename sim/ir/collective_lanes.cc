// Collectives consist of posts, by which ranks wait for each other, and the work after them.
#include "sim/ir/collective_lanes.h"

#include <utility>

namespace bubblescope::inline sim {

CollectiveLanes::CollectiveLanes(ProgramDraft& draft, std::string name)
    : draft_(draft), name_(std::move(name)) {
  for (std::uint32_t lane = 0; lane < draft.lanes().size(); ++lane)
    if (draft.lanes()[lane].name == name_) note(draft.lanes()[lane].rank, lane);
}

void CollectiveLanes::note(std::int32_t rank, std::uint32_t lane) {
  const auto at = static_cast<std::size_t>(rank);
  if (lane_of_rank_.size() <= at) lane_of_rank_.resize(at + 1);
  lane_of_rank_[at] = lane;
}

std::uint32_t CollectiveLanes::lane_of(std::int32_t rank) {
  const auto at = static_cast<std::size_t>(rank);
  if (lane_of_rank_.size() <= at || !lane_of_rank_[at]) note(rank, draft_.add_lane({rank, name_}));
  return *lane_of_rank_[at];
}

InstructionId CollectiveLanes::add(const CollectivePart& part, Role role) {
  const InstructionId id = draft_.add({part.op, lane_of(part.rank), part.rank, part.rank, role});
  for (const InstructionId awaited : part.awaited) draft_.wait_for(awaited);
  return id;
}

std::vector<InstructionId> CollectiveLanes::add_together(const std::vector<CollectivePart>& parts) {
  if (parts.size() == 1) return {add(parts.front(), Role::kWork)};
  std::vector<InstructionId> posts;
  for (const CollectivePart& part : parts) posts.push_back(add(part, Role::kPost));
  if (posts.size() > 2) {
    // Adds one instruction for all to wait for: n parts then need 2n edges instead of n^2.
    const CollectivePart& first = parts.front();
    const InstructionId join = draft_.add({first.op, kNoLane, first.rank, first.rank, Role::kPost});
    for (const InstructionId post : posts) draft_.wait_for(post);
    posts = {join};
  }
  std::vector<InstructionId> work;
  for (const CollectivePart& part : parts)
    work.push_back(add({part.op, part.rank, posts}, Role::kWork));
  return work;
}

}  // namespace bubblescope::inline sim
