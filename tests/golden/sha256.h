// SHA-256, for golden orders of which only the digest is stored.
#pragma once

#include <string>
#include <string_view>

namespace bubblescope::tests {

/// FIPS 180-4, as 64 hexadecimal digits.
std::string sha256(std::string_view message);

}  // namespace bubblescope::tests
