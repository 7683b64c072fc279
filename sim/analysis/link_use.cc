// Utilization is bytes over capacity.
#include "sim/analysis/link_use.h"

#include <algorithm>

namespace bubblescope::inline sim {

std::vector<LinkUse> account_for_links(const Traffic& traffic, std::span<const ResourceUse> uses,
                                       Nanos makespan) {
  std::vector<LinkUse> links;
  for (std::size_t at = 0; at < uses.size(); ++at) {
    const Resource& resource = traffic.resources[at];
    const double possible = static_cast<double>(resource.capacity) * static_cast<double>(makespan);
    LinkUse link;
    link.name = resource.name;
    link.bytes = static_cast<Bytes>(uses[at].load / kLoadPerByte);
    link.busy = uses[at].busy;
    link.shared = uses[at].shared;
    link.utilization = makespan == 0 ? 0 : static_cast<double>(uses[at].load) / possible;
    links.push_back(std::move(link));
  }
  std::stable_sort(links.begin(), links.end(), [](const LinkUse& left, const LinkUse& right) {
    return left.utilization > right.utilization;
  });
  return links;
}

}  // namespace bubblescope::inline sim
