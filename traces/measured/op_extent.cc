// Joins the spans of an op's streams.
#include "traces/measured/op_extent.h"

#include <algorithm>

namespace bubblescope::traces {

void OpExtent::add(const TimeSpan& span, std::int64_t stream, bool is_transfer) {
  auto found = std::find_if(streams_.begin(), streams_.end(),
                            [=](const StreamExtent& one) { return one.stream == stream; });
  if (found == streams_.end()) found = streams_.insert(streams_.end(), {stream, span});
  found->span.start = std::min(found->span.start, span.start);
  found->span.end = std::max(found->span.end, span.end);
  found->computes = found->computes || !is_transfer;
}

std::optional<TimeSpan> OpExtent::find() const {
  const bool any_computes = std::any_of(streams_.begin(), streams_.end(),
                                        [](const StreamExtent& one) { return one.computes; });
  std::optional<TimeSpan> extent;
  for (const StreamExtent& one : streams_) {
    if (any_computes && !one.computes) continue;
    if (!extent) extent = one.span;
    extent->start = std::min(extent->start, one.span.start);
    extent->end = std::max(extent->end, one.span.end);
  }
  return extent;
}

}  // namespace bubblescope::traces
