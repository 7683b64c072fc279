// Quotes pieces of files in messages.
#include "traces/files/quote.h"

#include <fmt/format.h>

namespace bubblescope::traces {

std::string quote(std::string_view text) {
  constexpr std::size_t kMaxLength = 40;
  std::string quoted = "'";
  for (const char letter : text.substr(0, kMaxLength)) {
    if (letter >= ' ' && letter <= '~')
      quoted += letter;
    else
      quoted += fmt::format("\\x{:02x}", static_cast<unsigned char>(letter));
  }
  return quoted + (text.size() > kMaxLength ? "...'" : "'");
}

}  // namespace bubblescope::traces
