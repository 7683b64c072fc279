// Finds sets of modules by their names.
#include "sim/model/recompute_modules.h"

#include <algorithm>
#include <cstddef>

namespace bubblescope::inline sim {

RecomputeModules find_modules(std::string_view names) {
  RecomputeModules modules;
  while (!names.empty()) {
    const std::size_t end = std::min(names.find(','), names.size());
    const Named<RecomputeModule>* const known = find_named(kRecomputeModules, names.substr(0, end));
    if (known == nullptr) return {};
    modules.add(known->choice);
    names.remove_prefix(std::min(end + 1, names.size()));
  }
  return modules;
}

std::string to_text(RecomputeModules modules, std::string_view separator) {
  std::string text;
  for (const Named<RecomputeModule>& known : kRecomputeModules) {
    if (!modules.has(known.choice)) continue;
    if (!text.empty()) text += separator;
    text += known.name;
  }
  return text;
}

}  // namespace bubblescope::inline sim
