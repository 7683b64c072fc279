// Reads the flag that every command accepts.
#include "tools/flags/take_input_limit.h"

#include <cstddef>
#include <string>

#include "sim/ir/error.h"
#include "sim/ir/units.h"
#include "tools/flags/bare_size.h"
#include "tools/flags/choice.h"
#include "traces/files/input_limit.h"

namespace bubblescope::tools {

Arguments take_input_limit(const Arguments& words) {
  const std::string flag = "--max-input";
  Arguments left;
  for (std::size_t at = 0; at < words.size(); ++at) {
    const bool is_joined = words[at].starts_with(flag + "=");
    if (!is_joined && words[at] != flag) {
      left.push_back(words[at]);
      continue;
    }
    if (!is_joined && at + 1 == words.size()) throw Error(flag + " needs a size, such as 16GiB");
    const std::string size = is_joined ? words[at].substr(flag.size() + 1) : words[++at];
    name_errors(flag, [&] { traces::set_max_input(parse_bytes(size)); });
    warn_of_bare_size(flag, size, "bytes", "MiB");
  }
  return left;
}

}  // namespace bubblescope::tools
