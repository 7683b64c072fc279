// Memory of devices, and pinned memory of the host. All lies between pages that nobody can touch;
// what was given back cannot be touched either.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace bubblescope::fake_cuda {

struct Piece {
  std::byte* begin = nullptr;
  std::size_t bytes = 0;
  std::optional<std::int32_t> device;  ///< empty: of the host
  std::int64_t number = 0;             ///< no other ever has the same
};

/// Null where there is none at this address.
const Piece* find_piece(const void* address);

/// Refuses a range that is not whole in one piece.
const Piece& expect_inside(const void* address, std::size_t bytes, const std::string& call);

/// Refuses what kernels of a device cannot read or write. Null may be handed to them.
void expect_reachable(const void* address, std::int32_t device, const std::string& kernel);

/// Whether kernels of `device` may use the memory of `other`.
bool reaches_peer(std::int32_t device, std::int32_t other);

}  // namespace bubblescope::fake_cuda
