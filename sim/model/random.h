// Random numbers as functions: a draw depends only on its key and its number, so it is the same in
// any order, on any number of threads and on any machine.
#pragma once

#include <cstdint>

namespace bubblescope::inline sim {

/// The output function of SplitMix64 (Steele, Lea, Flood: "Fast Splittable Pseudorandom Number
/// Generators", 2014): every input bit affects every output bit.
constexpr std::uint64_t mix(std::uint64_t bits) {
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9u;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
  return bits ^ (bits >> 31);
}

/// Element `number` of the SplitMix64 sequence that starts at `key`.
constexpr std::uint64_t draw(std::uint64_t key, std::uint64_t number) {
  return mix(key + (number + 1) * 0x9e3779b97f4a7c15u);
}

}  // namespace bubblescope::inline sim
