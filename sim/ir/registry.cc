// Writes a name as registries compare it.
#include "sim/ir/registry.h"

#include <cctype>

namespace bubblescope::inline sim {

std::string normalize_name(std::string_view name) {
  std::string normal;
  for (const char letter : name)
    normal +=
        letter == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return normal;
}

}  // namespace bubblescope::inline sim
