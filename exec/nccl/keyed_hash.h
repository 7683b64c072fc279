// HMAC-SHA256 (RFC 2104, FIPS 180-4), which proves the possession of a key without sending it.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

namespace bubblescope::exec {

using Digest = std::array<std::byte, 32>;

Digest hash_sha256(std::span<const std::byte> message);

Digest hash_with_key(std::string_view key, std::span<const std::byte> message);

/// Compares in constant time.
bool are_equal(const Digest& one, const Digest& other);

}  // namespace bubblescope::exec
