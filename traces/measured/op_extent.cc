// Joins the spans of an op's streams.
#include "traces/measured/op_extent.h"

#include <algorithm>

namespace bubblescope::traces {

void OpExtent::add(const TimeSpan& span, std::int64_t stream, bool is_transfer) {
  auto found = std::find_if(streams_.begin(), streams_.end(),
                            [=](const StreamExtent& one) { return one.stream == stream; });
  if (found == streams_.end()) found = streams_.insert(streams_.end(), {stream, span});
  widen(found->span, span);
  found->computes = found->computes || !is_transfer;
}

std::optional<TimeSpan> OpExtent::find() const {
  const bool any_computes = std::any_of(streams_.begin(), streams_.end(),
                                        [](const StreamExtent& one) { return one.computes; });
  std::optional<TimeSpan> extent;
  for (const StreamExtent& one : streams_) {
    if (any_computes && !one.computes) continue;
    if (!extent) extent = one.span;
    widen(*extent, one.span);
  }
  return extent;
}

}  // namespace bubblescope::traces
