// Enumerators and their names: one table per enum, which flags, files and lists all read.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace bubblescope::inline sim {

template <class Choice>
struct Named {
  Choice choice;
  std::string_view name;
  std::string_view summary = {};
};

/// The name of a choice; empty if the table lacks it.
template <class Choice, std::size_t count>
std::string name_of(const std::array<Named<Choice>, count>& names, Choice choice) {
  for (const Named<Choice>& known : names)
    if (known.choice == choice) return std::string(known.name);
  return {};
}

/// The summary of a choice; empty if the table lacks it.
template <class Choice, std::size_t count>
std::string summary_of(const std::array<Named<Choice>, count>& names, Choice choice) {
  for (const Named<Choice>& known : names)
    if (known.choice == choice) return std::string(known.summary);
  return {};
}

/// Returns the entry with exactly this name, or null.
template <class Choice, std::size_t count>
const Named<Choice>* find_named(const std::array<Named<Choice>, count>& names,
                                std::string_view name) {
  for (const Named<Choice>& known : names)
    if (known.name == name) return &known;
  return nullptr;
}

}  // namespace bubblescope::inline sim
