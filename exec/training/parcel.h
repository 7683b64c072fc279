// A matrix on its way from stage to stage, and what can go wrong with it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "exec/runtime/blob.h"
#include "exec/runtime/injection.h"
#include "exec/training/matrix.h"

namespace bubblescope {

/// A matrix, with a checksum of its entries where it was sent as a message.
struct Parcel {
  Matrix matrix;
  std::optional<std::uint64_t> checksum;
};

/// Makes a message of a matrix; an injected fault damages it after its checksum was taken.
Parcel seal(Matrix matrix, Damage damage);

/// What is wrong with a parcel that should hold a matrix of this shape: "a wrong size: ...",
/// "garbage: ..."; empty: nothing is.
std::string find_damage(const Parcel& parcel, std::int32_t rows, std::int32_t columns);

/// A sealed parcel as bytes, and back. Bytes that are no parcel become one that is damaged.
Blob pack(const Parcel& parcel);
Parcel unpack(std::span<const std::byte> bytes);

}  // namespace bubblescope
