// Adds the ending of a plural.
#include "sim/ir/counted.h"

namespace bubblescope::inline sim {

std::string counted(std::int64_t count, std::string_view noun) {
  std::string text = std::to_string(count) + " " + std::string(noun);
  if (count == 1) return text;
  if (noun.ends_with("ry") || noun.ends_with("py")) return text.replace(text.size() - 1, 1, "ies");
  return text + (noun.ends_with("ch") || noun.ends_with("ss") ? "es" : "s");
}

}  // namespace bubblescope::inline sim
