// Tells the timers of Megatron-LM from DeepSpeed's by their names.
#include "traces/measured/printed_timers.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "traces/measured/timer_fields.h"
#include "traces/schedules/cell.h"

namespace bubblescope::traces {

PrintedTimers parse_printed_timers(std::string_view head, std::string_view rest) {
  PrintedTimers printed;
  const std::optional<std::int32_t> rank = find_printing_rank(head);
  bool is_deepspeed = rank.has_value();
  bool are_whole = false;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('|'), rest.size());
    const std::string_view field = rest.substr(0, end);
    rest.remove_prefix(std::min(rest.size(), end + 1));
    const std::size_t colon = field.find(':');
    if (colon == field.npos) continue;
    const std::string_view name = strip(field.substr(0, colon));
    const std::string_view value = first_word(field.substr(colon + 1));
    // The last field of a line that was cut may lack its value, or decimals that others have.
    if (rest.empty() && (value.empty() || (are_whole && may_be_cut(value)))) continue;
    are_whole = is_whole_time(value);
    is_deepspeed = is_deepspeed || is_name_of_deepspeed(name);
    printed.is_megatron =
        printed.is_megatron || name == "forward-compute" || name == "backward-compute";
    printed.is_pipeline = printed.is_pipeline || is_name_of_pipeline(name);
    const std::optional<double> time = parse_time(value);
    if (!time) {
      printed.unread = describe_no_time(value);
      return printed;
    }
    printed.times.push_back({std::string(name), rank, *time, *time});
  }
  printed.is_megatron = printed.is_megatron || !is_deepspeed;
  return printed;
}

}  // namespace bubblescope::traces
