// Formats amounts of memory with integer arithmetic only, so that rounding is exact.
#include "sim/ir/bytes_text.h"

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

namespace bubblescope::inline sim {

namespace {

/// Returns the amount in a unit, with two decimals below ten units and one from ten on: "9.87",
/// "16.4".
std::string in_unit_of(Bytes bytes, Bytes size) {
  const std::int64_t places = bytes < 10 * size ? 100 : 10;
  // The remainder is taken first, because `bytes` times 100 may not fit into 64 bits.
  const std::int64_t rest = (bytes % size * places + size / 2) / size;
  const std::int64_t parts = bytes / size * places + rest;
  const std::string fraction = std::to_string(places + parts % places).substr(1);
  return std::to_string(parts / places) + "." + fraction;
}

}  // namespace

std::string format_bytes(Bytes bytes) {
  static constexpr std::array<std::pair<Bytes, std::string_view>, 4> kUnits{
      {{Bytes{1} << 40, " TiB"}, {1 << 30, " GiB"}, {1 << 20, " MiB"}, {1 << 10, " KiB"}}};
  if (bytes < 0) return "-" + format_bytes(-bytes);
  for (const auto& [size, unit] : kUnits)
    if (bytes >= size) return in_unit_of(bytes, size) + std::string(unit);
  return std::to_string(bytes) + " B";
}

std::string gibibytes_text(Bytes bytes) {
  return bytes < 0 ? "-" + gibibytes_text(-bytes) : in_unit_of(bytes, Bytes{1} << 30);
}

}  // namespace bubblescope::inline sim
