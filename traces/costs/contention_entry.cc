// Reads the contention of a stage in a cost file.
#include "traces/costs/contention_entry.h"

#include "traces/json/json_node.h"

namespace bubblescope::traces {

ContentionEntry read_contention(const JsonNode& node) {
  node.expect_keys({kCostKeys[0], kCostKeys[1], kCostKeys[2], kCostKeys[3], kCostKeys[4]});
  ContentionEntry times;
  for (std::size_t kind = 0; kind < kCostKeys.size(); ++kind)
    if (const auto list = node.find(kCostKeys[kind]))
      for (std::size_t at = 0; at < list->size(); ++at)
        times[kind].push_back((*list)[at].duration());
  return times;
}

}  // namespace bubblescope::traces
