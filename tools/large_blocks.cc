// Large blocks of memory on huge pages. A Program of a million instructions has fifty megabytes:
// the first touch of that many small pages takes longer than all passes over it together.
//
// Part of the program only, not of the library: a program that embeds the library has its own heap.
#include <sys/mman.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kLargeBlock = std::size_t{256} << 10;
/// The heap grows by pieces of less than what malloc() maps apart. It is address space until used.
constexpr std::size_t kPiece = std::size_t{31} << 20;
constexpr std::size_t kPieces = 3;

/// Asks for huge pages where a range has whole ones. The system may decline; its small pages serve
/// as well.
void use_huge_pages(void* begin, std::size_t size) {
  const auto first = (reinterpret_cast<std::uintptr_t>(begin) + kHugePage - 1) & ~(kHugePage - 1);
  const auto end = (reinterpret_cast<std::uintptr_t>(begin) + size) & ~(kHugePage - 1);
  if (first < end) ::madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE);
}

/// Lets the heap grow before anything in it is touched: a page that has small pages already does
/// not become a huge one.
bool reserve_heap() {
  std::array<void*, kPieces> pieces{};
  for (void*& piece : pieces) {
    piece = std::malloc(kPiece);
    if (piece != nullptr) use_huge_pages(piece, kPiece);
  }
  for (void* const piece : pieces) std::free(piece);
  return true;
}

/// Null if there is no memory. What it returns is freed by free(), as the standard library's
/// operator delete does.
void* allocate(std::size_t size) {
  if (size < kLargeBlock) return std::malloc(size);
  [[maybe_unused]] static const bool is_reserved = reserve_heap();
  void* const block = std::malloc(size);
  if (block != nullptr) use_huge_pages(block, size);
  return block;
}

}  // namespace

void* operator new(std::size_t size) {
  while (true) {
    if (void* const block = allocate(size == 0 ? 1 : size)) return block;
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}
