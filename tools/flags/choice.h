// Flags whose values we parse ourselves: parsed texts and choices by name.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/ir/error.h"
#include "sim/ir/named.h"
#include "sim/ir/nearest_names.h"
#include "sim/ir/registry.h"
#include "tools/flags/command_flags.h"
#include "tools/flags/words.h"

namespace bubblescope::tools {

struct Flag {
  std::string name;  ///< with its aliases, as CLI11 writes them
  std::string help;
  std::string type = "TIME";
};

/// Puts the flag's name before what `read` throws.
void name_errors(const std::string& flag, const std::function<void()>& read);

/// Adds a flag with a parser whose errors begin with the name of the flag.
CommandFlag* add_parsed(CommandFlags& app, Flag flag, std::function<void(const std::string&)> read);

/// The same for a flag that may be repeated; `read` gets each text.
void add_repeated(CommandFlags& app, Flag flag, std::function<void(const std::string&)> read);

/// The names of a choice with their values.
template <class Choice>
using Choices = std::vector<std::pair<std::string, Choice>>;

template <class Choice, std::size_t count>
Choices<Choice> choices_of(const std::array<Named<Choice>, count>& table) {
  Choices<Choice> choices;
  for (const Named<Choice>& known : table) choices.emplace_back(known.name, known.choice);
  return choices;
}

/// Adds a flag that takes one of the names, in any case. Another one is answered with what
/// `hint_of` says of the normalized name, if anything, else with the nearest ones.
template <class Choice>
void add_choice(CommandFlags& app, Flag flag, const Choices<Choice>& choices,
                const std::function<void(Choice)>& set,
                const std::function<std::string(std::string_view)>& hint_of = {}) {
  std::vector<std::string> names;
  for (const auto& [name, choice] : choices) names.push_back(name);
  flag.type = join(names, "|");
  auto read = [choices, names, set, hint_of, all = flag.type](const std::string& text) {
    for (const auto& [name, choice] : choices)
      if (name == normalize_name(text)) return set(choice);
    std::string hint = hint_of ? hint_of(normalize_name(text)) : "";
    if (hint.empty()) hint = suggestion(nearest_names(text, names));
    throw Error("'" + text + "' is not one of " + all + hint);
  };
  add_parsed(app, std::move(flag), std::move(read));
}

}  // namespace bubblescope::tools
