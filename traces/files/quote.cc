// Quotes pieces of files in messages.
#include "traces/files/quote.h"

#include <cstddef>

#include "sim/ir/plain_text.h"

namespace bubblescope::traces {

std::string quote(std::string_view text) {
  constexpr std::size_t kMaxBytes = 40;
  return "'" + escape_line(shorten(text, kMaxBytes)) + "'";
}

}  // namespace bubblescope::traces
