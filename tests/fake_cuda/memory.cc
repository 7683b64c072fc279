// Allocates and frees memory.
#include "tests/fake_cuda/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "tests/fake_cuda/devices.h"
#include "tests/fake_cuda/engine.h"

namespace bubblescope::tests::fake_cuda {

namespace {

constexpr std::size_t kAlignment = 256;  // guaranteed by cudaMalloc
constexpr int kUnwritten = 0xff;         // NaN
constexpr std::byte kUntouched{0xa5};

std::size_t page() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

std::size_t round_up(std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; }

std::size_t room_of(const Piece& piece) {
  return round_up(round_up(piece.bytes, kAlignment), page());
}

/// The first page of a block. The block ends at the end of its last page, up to alignment.
std::byte* pages_of(const Piece& piece) {
  return piece.begin + round_up(piece.bytes, kAlignment) - room_of(piece);
}

using Pieces = std::map<const std::byte*, Piece>;

std::string describe(const Piece& piece) {
  return std::to_string(piece.bytes) + " bytes of " +
         (piece.device ? "device " + std::to_string(*piece.device) : std::string("the host"));
}

Pieces& pieces() {
  static auto& instance = *new Pieces;
  [[maybe_unused]] static const bool asked = [] {
    ask_for_leaks([] {
      std::string left;
      for (const auto& [begin, piece] : instance)
        left += (left.empty() ? "" : ", ") + describe(piece);
      return left;
    });
    return true;
  }();
  return instance;
}

void* take(Piece piece) {
  static std::int64_t taken = 0;
  piece.number = ++taken;
  const std::size_t room = room_of(piece);
  void* const mapped =
      mmap(nullptr, room + 2 * page(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  std::byte* const begin = static_cast<std::byte*>(mapped) + page();
  mprotect(begin, room, PROT_READ | PROT_WRITE);
  piece.begin = begin + room - round_up(piece.bytes, kAlignment);
  std::fill(begin, piece.begin, kUntouched);
  std::fill(piece.begin + piece.bytes, begin + room, kUntouched);
  std::memset(piece.begin, kUnwritten, piece.bytes);
  pieces()[piece.begin] = piece;
  return piece.begin;
}

/// The rest of the block's pages must be unchanged.
void expect_untouched(const Piece& piece) {
  const auto is_touched = [](std::byte value) { return value != kUntouched; };
  const std::byte* const pages = pages_of(piece);
  if (std::any_of(pages, static_cast<const std::byte*>(piece.begin), is_touched) ||
      std::any_of(piece.begin + piece.bytes, piece.begin + round_up(piece.bytes, kAlignment),
                  is_touched))
    refuse("somebody wrote beside " + describe(piece));
}

void give_back(void* memory, bool of_device, const char* call) {
  const auto at = pieces().find(static_cast<const std::byte*>(memory));
  if (at == pieces().end() || at->second.device.has_value() != of_device)
    refuse(std::string(call) + ": no memory of this kind begins here");
  expect_untouched(at->second);
  munmap(pages_of(at->second) - page(), room_of(at->second) + 2 * page());
  pieces().erase(at);
}

std::size_t taken_of(std::int32_t device) {
  std::size_t sum = 0;
  for (const auto& [begin, piece] : pieces())
    if (piece.device == device) sum += piece.bytes;
  return sum;
}

}  // namespace

const Piece* find_piece(const void* address) {
  const auto* const at = static_cast<const std::byte*>(address);
  const auto after = pieces().upper_bound(at);
  if (after == pieces().begin()) return nullptr;
  const Piece& piece = std::prev(after)->second;
  return at < piece.begin + piece.bytes ? &piece : nullptr;
}

const Piece& expect_inside(const void* address, std::size_t bytes, const std::string& call) {
  const Piece* const piece = find_piece(address);
  if (piece == nullptr) refuse(call + ": memory that is neither a device's nor pinned");
  const auto offset =
      static_cast<std::size_t>(static_cast<const std::byte*>(address) - piece->begin);
  if (offset + bytes > piece->bytes)
    refuse(call + ": " + std::to_string(bytes) + " bytes from byte " + std::to_string(offset) +
           " of " + describe(*piece));
  return *piece;
}

void expect_reachable(const void* address, std::int32_t device, const std::string& kernel) {
  if (address == nullptr) return;
  const Piece& piece = expect_inside(address, 1, kernel);
  if (piece.device && *piece.device != device && !reaches_peer(device, *piece.device))
    refuse(kernel + ": device " + std::to_string(device) + " cannot reach " + describe(piece));
}

}  // namespace bubblescope::tests::fake_cuda

using namespace bubblescope::tests::fake_cuda;

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  return call("cudaMalloc", [&] {
    *memory = nullptr;
    if (bytes == 0) return cudaSuccess;
    const std::int32_t device = current_device();
    if (taken_of(device) + bytes > kDeviceBytes) return cudaErrorMemoryAllocation;
    *memory = take({nullptr, bytes, device});
    return *memory != nullptr ? cudaSuccess : cudaErrorMemoryAllocation;
  });
}

/// Waits for all work of the device, as the real cudaFree does.
cudaError_t cudaFree(void* memory) {
  return call("cudaFree", [&] {
    if (memory == nullptr) return cudaSuccess;
    const Piece* const piece = find_piece(memory);
    if (piece != nullptr && piece->device) await_device(*piece->device, "cudaFree");
    give_back(memory, true, "cudaFree");
    return cudaSuccess;
  });
}

cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned int flags) {
  return call("cudaHostAlloc", [&] {
    if ((flags & ~(cudaHostAllocPortable | cudaHostAllocMapped)) != 0) return cudaErrorInvalidValue;
    // With unified addressing, devices can access all of it.
    *memory = bytes == 0 ? nullptr : take({nullptr, bytes, {}});
    return cudaSuccess;
  });
}

cudaError_t cudaFreeHost(void* memory) {
  return call("cudaFreeHost", [&] {
    if (memory == nullptr) return cudaSuccess;
    for (std::int32_t device = 0; device < device_count(); ++device)
      await_device(device, "cudaFreeHost");
    give_back(memory, false, "cudaFreeHost");
    return cudaSuccess;
  });
}

cudaError_t cudaHostGetDevicePointer(void** on_device, void* on_host, unsigned int flags) {
  return call("cudaHostGetDevicePointer", [&] {
    const Piece* const piece = find_piece(on_host);
    if (flags != 0 || piece == nullptr || piece->device) return cudaErrorInvalidValue;
    *on_device = on_host;
    return cudaSuccess;
  });
}
