// Sorts ops by slot.
#include "schedules/slot_order.h"

#include <algorithm>

namespace bubblescope::schedules {

void SlotOrder::add(Stream stream, std::int32_t position, std::int32_t count) {
  const auto [stages, group_size] = pipeline_;
  for (std::int32_t at = 0; at < count; ++at) {
    const std::int32_t microbatch = stream.first_microbatch + at;
    const std::int64_t entry = std::int64_t{2} * stages * (at / group_size) + 2 * (at % group_size);
    ops_.push_back({entry + position, forward(stream.stage, microbatch)});
    ops_.push_back({entry + 2 * stages - 1 - position, backward(stream.stage, microbatch)});
  }
}

RankOrder SlotOrder::take() && {
  std::sort(ops_.begin(), ops_.end(),
            [](const SlottedOp& a, const SlottedOp& b) { return a.slot < b.slot; });
  RankOrder order;
  order.reserve(ops_.size());
  for (const SlottedOp& slotted : ops_) order.push_back(slotted.op);
  return order;
}

bool has_few_groups(const ScheduleRequest& request) {
  const std::int64_t ranks = request.shape.ranks;
  const Nanos forward = request.cost.forward;
  const Nanos backward = request.cost.full_backward();
  if (request.shape.microbatches <= ranks) return true;
  return request.shape.microbatches == 2 * ranks && backward <= 2 * forward &&
         forward <= 2 * backward;
}

}  // namespace bubblescope::schedules
