// Looks up and divides the parts of ops.
#include "sim/model/op_parts.h"

namespace bubblescope::inline sim {

std::optional<PartLane> find_part_lane(std::string_view name) {
  for (std::size_t lane = 0; lane < kPartLanes.size(); ++lane)
    if (kPartLanes[lane].name == name) return static_cast<PartLane>(lane);
  return {};
}

std::vector<std::size_t> find_last_parts(const OpParts& op) {
  std::vector<bool> is_awaited(op.parts.size(), false);
  for (const OpPart& part : op.parts)
    for (const std::size_t awaited : part.after) is_awaited[awaited] = true;
  std::vector<std::size_t> last;
  for (std::size_t at = 0; at < op.parts.size(); ++at)
    if (!is_awaited[at]) last.push_back(at);
  return last;
}

OpParts make_series(OpParts op) {
  for (std::size_t at = 0; at < op.parts.size(); ++at) {
    OpPart& part = op.parts[at];
    part.after.clear();
    part.after_previous_layer.clear();
    if (at > 0)
      part.after = {at - 1};
    else
      part.after_previous_layer = {op.parts.size() - 1};
  }
  return op;
}

OpParts divide_parts(OpParts op, std::int32_t slices, std::int32_t slice) {
  for (OpPart& part : op.parts)
    part.times.resize(static_cast<std::size_t>(op.layers), part.times.front());
  Nanos whole = 0;
  Nanos share = 0;
  for (std::size_t layer = 0; layer < static_cast<std::size_t>(op.layers); ++layer)
    for (OpPart& part : op.parts) {
      whole += part.times[layer];
      part.times[layer] = part_of(whole, slices, slice) - share;
      share += part.times[layer];
    }
  return op;
}

}  // namespace bubblescope::inline sim
