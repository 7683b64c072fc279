// The payload of a message between stages, and its damage checks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "exec/runtime/blob.h"
#include "exec/training/matrix.h"
#include "sim/model/injection.h"

namespace bubblescope::exec {

/// A matrix, with a checksum of its entries if it was sent as a message.
struct Payload {
  Matrix matrix;
  std::optional<std::uint64_t> checksum;
};

/// Adds the checksum. An injected fault then damages the payload.
Payload seal(Matrix matrix, Damage damage);

/// Checks a payload against the shape that its receiver expects. Returns "a wrong size: ...",
/// "an invalid message: ...", or an empty text if it is intact.
std::string find_damage(const Payload& payload, std::int32_t rows, std::int32_t columns);

/// Serialize and deserialize a sealed payload. Malformed bytes give a damaged payload.
Blob pack(const Payload& payload);
Payload unpack(std::span<const std::byte> bytes);

}  // namespace bubblescope::exec
