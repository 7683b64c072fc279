// Interprets the fields of an event.
#include "traces/measured/read_event.h"

#include <string_view>

#include "sim/ir/number.h"

namespace bubblescope::traces {

std::int64_t ReadEvent::number_of(Activity activity) const {
  if (activity == Activity::kStep)
    return parse_number<std::int64_t>(std::string_view(slice.name).substr(kStepMark.size()))
        .value_or(kNoNumber);
  if (activity == Activity::kGradientFlow || activity == Activity::kGradientEnd) return flow;
  const bool is_launch = activity == Activity::kLaunch || activity == Activity::kCopyCall;
  return is_launch || is_on_device(activity) ? correlation : slice.number.value_or(kNoNumber);
}

}  // namespace bubblescope::traces
