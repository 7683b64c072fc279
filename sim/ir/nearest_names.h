// Finds the known names that a mistyped, abbreviated or reordered name may mean: "mbs" is near
// "micro-batch-size", "llama-70b" is near "llama3-70b".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/ir/registry.h"

namespace bubblescope::inline sim {

/// The words of a name, in order: "micro-batch-size" has "micro", "batch" and "size".
std::vector<std::string_view> words_in_name(std::string_view name);

/// The nearest of the known names: at most four, in the order of `known`; empty if none is near.
std::vector<std::string> nearest_names(std::string_view name,
                                       const std::vector<std::string>& known);

/// The nearest names in a registry; names come before aliases.
template <class Def>
std::vector<std::string> nearest_names(std::string_view name, const Registry<Def>& registry) {
  std::vector<std::string> known;
  for (const Def& def : registry.all()) known.push_back(def.name);
  for (const Def& def : registry.all())
    known.insert(known.end(), def.aliases.begin(), def.aliases.end());
  return nearest_names(name, known);
}

/// The suggestion at the end of an error message: "; did you mean 'zb-h1' or 'zb-h2'?". Empty if
/// `nearest` is empty.
std::string suggestion(const std::vector<std::string>& nearest);

}  // namespace bubblescope::inline sim
