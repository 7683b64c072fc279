// Warns about flags under a heading.
#include "tools/flags/heading.h"

#include <fmt/format.h>

#include "tools/flags/command_flags.h"
#include "tools/print.h"

namespace bubblescope::tools {

void warn_of_unused(const CommandFlags& app, const std::string& heading, const std::string& why) {
  for (const std::string& flag : app.given_under(heading))
    print_message("bubblescope: {} changes nothing {}\n", flag, why);
}

}  // namespace bubblescope::tools
