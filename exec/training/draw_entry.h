// Draws initial weights from a counter: an entry depends only on its key and its index. So entries
// are drawn in any order, by many threads or on a device, and are the same everywhere, bit for bit.
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define BUBBLESCOPE_ON_HOST_AND_DEVICE __host__ __device__
#else
#define BUBBLESCOPE_ON_HOST_AND_DEVICE
#endif

namespace bubblescope::exec {

/// Scrambles a counter: the output function of SplitMix64. It repeats mix() of sim/ir/mix.h,
/// because devices call it as well.
BUBBLESCOPE_ON_HOST_AND_DEVICE constexpr std::uint64_t scramble(std::uint64_t bits) {
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9U;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebU;
  return bits ^ (bits >> 31);
}

/// A number of mean 0 and variance 1, nearly normal: the sum of four uniform numbers of 16 bits.
/// Its integer is exact as a float32, so the result is rounded once on every machine.
BUBBLESCOPE_ON_HOST_AND_DEVICE constexpr float draw_entry(std::uint64_t key, std::uint64_t entry) {
  constexpr float kUnit = 1.7320508F / 65536;  // the inverse of the sum's standard deviation
  constexpr std::int32_t kMean = 2 * 65535;
  const std::uint64_t bits = scramble(key + (entry + 1) * 0x9e3779b97f4a7c15U);
  const auto sum = static_cast<std::int32_t>((bits & 0xffffU) + (bits >> 16 & 0xffffU) +
                                             (bits >> 32 & 0xffffU) + (bits >> 48));
  return static_cast<float>(sum - kMean) * kUnit;
}

}  // namespace bubblescope::exec

#undef BUBBLESCOPE_ON_HOST_AND_DEVICE
