// Looks for the flags of a model among the words of a command.
#include "tools/flags/no_model.h"

#include <fmt/format.h>

#include <string_view>

#include "sim/ir/error.h"

namespace bubblescope::tools {

void expect_no_model(const std::vector<std::string>& arguments, const std::string& command,
                     const std::string& instead) {
  for (const std::string& argument : arguments)
    for (const std::string_view flag : {"--model", "--gpu"})
      if (argument.substr(0, argument.find('=')) == flag)
        throw Error(fmt::format("{} looks at orders, which {} does not change; {}", command, flag,
                                instead));
}

}  // namespace bubblescope::tools
