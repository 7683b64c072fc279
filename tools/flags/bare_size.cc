// Looks for a number that ends without a unit.
#include "tools/flags/bare_size.h"

#include "sim/ir/number.h"
#include "tools/print.h"

namespace bubblescope::tools {

void warn_of_bare_size(const std::string& flag, const std::string& text, const std::string& what,
                       const std::string& unit) {
  constexpr double kMinMeant = 1 << 20;
  const auto number = parse_number<double>(text);
  if (!number || *number == 0 || *number >= kMinMeant) return;
  print_message("bubblescope: {0} {1} is {1} {2}, not {1}{3}\n", flag, text, what, unit);
}

}  // namespace bubblescope::tools
