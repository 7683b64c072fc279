// The instructions of exec/gpu/device/mma.cuh on the host. Every lane computes its own part from
// the fragments of all lanes, which lie as the PTX ISA says.
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "tests/support/emulated_block.h"
// The instructions need the CUDA emulation above.
#include "exec/gpu/device/mma.cuh"

namespace bubblescope::tests {

namespace {

using exec::Bfloat16;

struct Fragments {
  const std::uint32_t* left;
  const std::uint32_t* right;
};

unsigned int own_lane() { return emulated_thread().x % exec::kWarp; }

/// One of the two numbers of a register.
float half_of(std::uint32_t both, unsigned int which) {
  return exec::to_float(Bfloat16{static_cast<std::uint16_t>(both >> 16 * which)});
}

const Fragments& fragments_of(unsigned int lane) {
  return *static_cast<const Fragments*>(emulated_shown_by(lane));
}

/// a0, a1: columns 0 to 7; a2, a3: columns 8 to 15; a1 and a3: rows 8 to 15.
float left_entry(unsigned int row, unsigned int column) {
  const unsigned int lane = row % 8 * 4 + column % 8 / 2;
  return half_of(fragments_of(lane).left[row / 8 + column / 8 * 2], column % 2);
}

/// b0: rows 0 to 7, b1: rows 8 to 15.
float right_entry(unsigned int row, unsigned int column) {
  const unsigned int lane = column * 4 + row % 8 / 2;
  return half_of(fragments_of(lane).right[row / 8], row % 2);
}

/// Row `row` of one of the four matrices that the lanes point to.
const Bfloat16* matrix_row(unsigned int matrix, unsigned int row) {
  return static_cast<const Bfloat16*>(emulated_shown_by(matrix * 8 + row));
}

std::uint32_t pack(Bfloat16 low, Bfloat16 high) {
  return static_cast<std::uint32_t>(low.bits) | static_cast<std::uint32_t>(high.bits) << 16;
}

void expect_aligned(const void* address) {
  if (reinterpret_cast<std::uintptr_t>(address) % 16 != 0)
    throw std::logic_error("16 bytes at an address that is not a multiple of 16");
}

template <class Take>
void load_all(std::uint32_t (&to)[4], const Bfloat16* row, const Take& take) {
  expect_aligned(row);
  emulated_show(row);
  for (unsigned int matrix = 0; matrix < 4; ++matrix) to[matrix] = take(matrix);
  emulated_end_show();
}

}  // namespace

}  // namespace bubblescope::tests

namespace bubblescope::exec {

using namespace bubblescope::tests;

void multiply_fragments(float (&sums)[4], const std::uint32_t (&left)[4],
                        const std::uint32_t (&right)[2]) {
  const Fragments own{left, right};
  emulated_show(&own);
  const unsigned int lane = own_lane();
  for (unsigned int each = 0; each < 4; ++each) {
    const unsigned int row = lane / 4 + each / 2 * 8;
    const unsigned int column = lane % 4 * 2 + each % 2;
    for (unsigned int k = 0; k < 16; ++k) sums[each] += left_entry(row, k) * right_entry(k, column);
  }
  emulated_end_show();
}

void load_matrices(std::uint32_t (&to)[4], const Bfloat16* row) {
  const unsigned int lane = own_lane();
  load_all(to, row, [lane](unsigned int matrix) {
    const Bfloat16* const own = matrix_row(matrix, lane / 4) + lane % 4 * 2;
    return pack(own[0], own[1]);
  });
}

void load_transposed(std::uint32_t (&to)[4], const Bfloat16* row) {
  const unsigned int lane = own_lane();
  load_all(to, row, [lane](unsigned int matrix) {
    const unsigned int first = lane % 4 * 2;
    return pack(matrix_row(matrix, first)[lane / 4], matrix_row(matrix, first + 1)[lane / 4]);
  });
}

void begin_copy(Bfloat16* shared, const Bfloat16* from, bool is_there) {
  expect_aligned(shared);
  expect_aligned(from);
  if (is_there)
    std::memcpy(shared, from, 16);
  else
    std::memset(shared, 0, 16);
}

void begin_copy(float* shared, const float* from, bool is_there) { *shared = is_there ? *from : 0; }

void await_copies() {}

float power_of_two(float x) { return std::exp2(x); }

std::uint32_t pack_halves(float low, float high) {
  return pack(from_float<Bfloat16>(low), from_float<Bfloat16>(high));
}

}  // namespace bubblescope::exec
