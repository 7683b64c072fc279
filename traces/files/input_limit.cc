// Holds the input limit of the process.
#include "traces/files/input_limit.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "sim/ir/bytes_text.h"

namespace bubblescope::traces {

namespace {

constexpr std::size_t kMaxStreamed = std::size_t{512} << 20;
constexpr std::size_t kAlwaysUnpacked = std::size_t{64} << 20;
constexpr std::size_t kAlwaysParsed = std::size_t{512} << 20;
constexpr std::size_t kMaxGrowth = 200;  ///< traces usually grow 10-fold to 40-fold

struct SharedLimit {
  std::mutex mutex;
  InputLimit limit;
};

SharedLimit& shared() {
  static SharedLimit only;
  return only;
}

void set_limit(const InputLimit& limit) {
  const std::lock_guard lock(shared().mutex);
  shared().limit = limit;
}

}  // namespace

InputLimit input_limit() {
  const std::lock_guard lock(shared().mutex);
  return shared().limit;
}

void set_max_input(Bytes size) { set_limit({size, true}); }

InputLimitScope::~InputLimitScope() { set_limit(saved_); }

std::size_t max_streamed() {
  const InputLimit given = input_limit();
  const auto size = static_cast<std::size_t>(given.size);
  return given.is_given ? size : std::min(size, kMaxStreamed);
}

std::size_t max_unpacked(std::size_t packed) {
  const InputLimit given = input_limit();
  const auto size = static_cast<std::size_t>(given.size);
  if (given.is_given || packed > size / kMaxGrowth) return size;
  return std::min(size, std::max(kAlwaysUnpacked, packed * kMaxGrowth));
}

std::size_t max_parsed(std::size_t text) {
  return input_limit().is_given ? SIZE_MAX : kAlwaysParsed + 3 * text;
}

std::string describe_too_large(const std::string& file, std::size_t max_size) {
  return fmt::format("{} has more than {}, which is the limit; `max_input` SIZE raises it", file,
                     format_bytes(static_cast<Bytes>(max_size)));
}

}  // namespace bubblescope::traces
