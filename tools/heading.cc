// Flags under a heading.
#include "tools/heading.h"

#include <fmt/format.h>

#include <cstdio>

#include "tools/say.h"

namespace bubblescope {

void warn_of_unused(const CLI::App& app, const std::string& heading, const std::string& why) {
  const auto given = [&](const CLI::Option* option) {
    return option->get_group() == heading && option->count() > 0;
  };
  for (const CLI::Option* option : app.get_options(given))
    say("bubblescope: {} changes nothing {}\n", option->get_name(), why);
}

}  // namespace bubblescope
