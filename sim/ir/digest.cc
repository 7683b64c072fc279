// Mixes eight bytes at a time.
#include "sim/ir/digest.h"

#include <cstddef>
#include <cstring>

namespace bubblescope::inline sim {

namespace {

constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15U;

/// The output function of SplitMix64. It is a bijection, so no difference is ever lost.
std::uint64_t mix(std::uint64_t bits) {
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9U;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebU;
  return (bits ^ (bits >> 31)) + kStep;
}

}  // namespace

std::uint64_t digest(std::string_view bytes, std::uint64_t before) {
  std::uint64_t state = mix(before ^ bytes.size());
  while (!bytes.empty()) {
    std::uint64_t word = 0;
    const std::size_t count = bytes.size() < sizeof word ? bytes.size() : sizeof word;
    std::memcpy(&word, bytes.data(), count);
    state = mix(state ^ word);
    bytes.remove_prefix(count);
  }
  return state;
}

std::string digest_text(std::uint64_t digest) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text(16, '0');
  for (std::size_t at = text.size(); at-- > 0; digest >>= 4) text[at] = kDigits[digest & 0xf];
  return text;
}

}  // namespace bubblescope::inline sim
