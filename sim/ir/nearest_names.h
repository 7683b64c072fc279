// The known names that a mistyped, shortened or otherwise ordered one may mean: "mbs" is near
// "micro-batch-size", "llama-70b" near "llama3-70b".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/ir/registry.h"

namespace bubblescope::inline sim {

/// At most four, in their order; empty if none is near.
std::vector<std::string> nearest_names(std::string_view name,
                                       const std::vector<std::string>& known);

/// Of a registry, names before aliases.
template <class Def>
std::vector<std::string> nearest_names(std::string_view name, const Registry<Def>& registry) {
  std::vector<std::string> known;
  for (const Def& def : registry.all()) known.push_back(def.name);
  for (const Def& def : registry.all())
    known.insert(known.end(), def.aliases.begin(), def.aliases.end());
  return nearest_names(name, known);
}

/// "; did you mean 'zb-h1' or 'zb-h2'?"; empty if there are none.
std::string suggestion(const std::vector<std::string>& nearest);

}  // namespace bubblescope::inline sim
