// HMAC-SHA256 (RFC 2104, FIPS 180-4): shows that someone has a key, without telling it.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

namespace bubblescope::exec {

using Digest = std::array<std::byte, 32>;

Digest hash_sha256(std::span<const std::byte> message);

Digest hash_with_key(std::string_view key, std::span<const std::byte> message);

/// In a time that does not depend on where they differ.
bool are_equal(const Digest& one, const Digest& other);

}  // namespace bubblescope::exec
