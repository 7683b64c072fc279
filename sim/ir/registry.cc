// Looks up names and suggests corrections.
#include "sim/ir/registry.h"

#include <cctype>

#include "sim/ir/nearest_names.h"

namespace bubblescope::inline sim {

std::string normalize_name(std::string_view name) {
  std::string normal;
  for (const char letter : name)
    normal +=
        letter == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return normal;
}

std::string find_nearest_name(std::string_view name, const std::vector<std::string>& known) {
  const std::vector<std::string> nearest = nearest_names(name, known);
  return nearest.empty() ? "" : nearest.front();
}

std::string suggestion(std::string_view nearest) {
  return nearest.empty() ? "" : "; did you mean '" + std::string(nearest) + "'?";
}

}  // namespace bubblescope::inline sim
