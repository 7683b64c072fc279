// Reports flags that change nothing.
#include "tools/inputs/given_flag.h"

#include <string_view>

#include "tools/print.h"

namespace bubblescope::tools {

void report_unused(std::span<const GivenFlag> flags, Hints hints) {
  for (const GivenFlag& flag : flags) {
    if (!flag.is_given || flag.is_used) continue;
    const std::string_view why = flag.why;
    print_message("bubblescope: {} changes nothing: {}\n", flag.name,
                  hints == Hints::kFlags ? why : why.substr(0, why.find(';')));
  }
}

}  // namespace bubblescope::tools
