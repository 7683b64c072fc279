// Device memory and pinned host memory. Every block lies between guard pages, and freed blocks
// become inaccessible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace bubblescope::tests::fake_cuda {

struct Piece {
  std::byte* begin = nullptr;
  std::size_t bytes = 0;
  std::optional<std::int32_t> device;  ///< empty: host memory
  std::int64_t number = 0;             ///< unique
};

/// The block that contains an address; null if there is none.
const Piece* find_piece(const void* address);

/// Refuses a range that is not within one block.
const Piece& expect_inside(const void* address, std::size_t bytes, const std::string& call);

/// Refuses memory that kernels of the device cannot access; null is allowed.
void expect_reachable(const void* address, std::int32_t device, const std::string& kernel);

/// Whether kernels of `device` may access the memory of `other`.
bool reaches_peer(std::int32_t device, std::int32_t other);

}  // namespace bubblescope::tests::fake_cuda
