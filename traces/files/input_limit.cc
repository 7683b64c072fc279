// Holds the input limit of the process.
#include "traces/files/input_limit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "sim/ir/bytes_text.h"

namespace bubblescope::traces {

namespace {

constexpr std::size_t kMaxStreamed = std::size_t{512} << 20;
constexpr std::size_t kAlwaysUnpacked = std::size_t{64} << 20;
constexpr std::size_t kAlwaysParsed = std::size_t{512} << 20;
constexpr std::size_t kMaxGrowth = 200;  ///< traces usually grow 10-fold to 40-fold

InputLimit& limit() {
  static InputLimit only;
  return only;
}

}  // namespace

const InputLimit& input_limit() { return limit(); }

void set_max_input(Bytes size) { limit() = {size, true}; }

std::size_t max_streamed() {
  const auto size = static_cast<std::size_t>(limit().size);
  return limit().is_given ? size : std::min(size, kMaxStreamed);
}

std::size_t max_unpacked(std::size_t packed) {
  const auto size = static_cast<std::size_t>(limit().size);
  if (limit().is_given || packed > size / kMaxGrowth) return size;
  return std::min(size, std::max(kAlwaysUnpacked, packed * kMaxGrowth));
}

std::size_t max_parsed(std::size_t text) {
  return limit().is_given ? SIZE_MAX : kAlwaysParsed + 3 * text;
}

std::string describe_too_large(const std::string& file, std::size_t max_size) {
  return fmt::format("{} has more than {}, which is the limit; `max_input` SIZE raises it", file,
                     format_bytes(static_cast<Bytes>(max_size)));
}

}  // namespace bubblescope::traces
