// Sorts names by their time.
#include "traces/measured/longest_names.h"

#include <algorithm>
#include <cstddef>

namespace bubblescope::traces {

std::string list_longest(std::vector<TimedName> names) {
  constexpr std::size_t kShownNames = 3;
  std::stable_sort(names.begin(), names.end(), [](const TimedName& left, const TimedName& right) {
    return left.time > right.time;
  });
  std::string list;
  for (std::size_t at = 0; at < names.size() && at < kShownNames; ++at)
    list += (at == 0 ? "" : ", ") + names[at].text;
  return names.size() > kShownNames ? list + ", others" : list;
}

}  // namespace bubblescope::traces
