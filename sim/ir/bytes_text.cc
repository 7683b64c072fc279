// Uses integers only, like units.
#include "sim/ir/bytes_text.h"

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

namespace bubblescope {

std::string bytes_text(Bytes bytes) {
  static constexpr std::array<std::pair<Bytes, std::string_view>, 4> kUnits{
      {{Bytes{1} << 40, " TiB"}, {1 << 30, " GiB"}, {1 << 20, " MiB"}, {1 << 10, " KiB"}}};
  if (bytes < 0) return "-" + bytes_text(-bytes);
  for (const auto& [size, unit] : kUnits) {
    if (bytes < size) continue;
    const bool is_small = bytes < 10 * size;
    const std::int64_t places = is_small ? 100 : 10;
    // Divides first, because a size times 100 might overflow.
    const std::int64_t rest = (bytes % size) / (size / 1024) * places;
    const std::int64_t parts = bytes / size * places + (rest + 512) / 1024;
    std::string fraction = std::to_string(places + parts % places).substr(1);
    return std::to_string(parts / places) + "." + fraction + std::string(unit);
  }
  return std::to_string(bytes) + " B";
}

}  // namespace bubblescope
