// Mixes the bits of a number, for digests and random draws.
#pragma once

#include <cstdint>

namespace bubblescope::inline sim {

/// The output function of SplitMix64 (Steele, Lea, Flood: "Fast Splittable Pseudorandom Number
/// Generators", 2014): a bijection in which every input bit affects every output bit.
constexpr std::uint64_t mix(std::uint64_t bits) {
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9U;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebU;
  return bits ^ (bits >> 31);
}

}  // namespace bubblescope::inline sim
