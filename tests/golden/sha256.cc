// Prints digests with the program's own SHA-256.
#include "tests/golden/sha256.h"

#include <fmt/format.h>

#include <span>

#include "exec/nccl/keyed_hash.h"

namespace bubblescope::tests {

std::string sha256(std::string_view message) {
  std::string digits;
  for (const std::byte byte : exec::hash_sha256(std::as_bytes(std::span(message))))
    digits += fmt::format("{:02x}", std::to_integer<int>(byte));
  return digits;
}

}  // namespace bubblescope::tests
