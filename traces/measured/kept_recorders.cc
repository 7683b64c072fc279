// Renumbers what is kept.
#include "traces/measured/kept_recorders.h"

#include <cstddef>
#include <cstdint>
#include <utility>

namespace bubblescope::traces {

ObservedTrace keep_recorders(ObservedTrace trace, const std::vector<bool>& is_kept) {
  std::vector<std::int32_t> number_of;
  std::vector<Recorder> kept;
  for (std::size_t at = 0; at < is_kept.size(); ++at) {
    number_of.push_back(static_cast<std::int32_t>(kept.size()));
    if (is_kept[at]) kept.push_back(std::move(trace.recorders[at]));
  }
  trace.recorders = std::move(kept);
  const auto renumber = [&](auto& list) {
    std::erase_if(
        list, [&](const auto& seen) { return !is_kept[static_cast<std::size_t>(seen.recorder)]; });
    for (auto& seen : list) seen.recorder = number_of[static_cast<std::size_t>(seen.recorder)];
  };
  renumber(trace.ops);
  renumber(trace.activities);
  return trace;
}

}  // namespace bubblescope::traces
