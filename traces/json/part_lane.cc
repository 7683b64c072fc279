// Looks up the lane of a part.
#include "traces/json/part_lane.h"

#include <fmt/format.h>

#include <optional>
#include <string_view>
#include <vector>

namespace bubblescope::traces {

PartLane read_part_lane(const JsonNode& node) {
  if (const std::optional<PartLane> lane = find_part_lane(node.text())) return *lane;
  std::vector<std::string_view> names;
  for (const PartLaneKind& kind : kPartLanes) names.push_back(kind.name);
  node.refuse(fmt::format("is not a lane; the lanes are {}", fmt::join(names, ", ")));
}

}  // namespace bubblescope::traces
