// Mixes eight bytes at a time.
#include "sim/ir/digest.h"

#include <cstddef>
#include <cstring>

#include "sim/ir/mix.h"

namespace bubblescope::inline sim {

namespace {

/// The output function of SplitMix64 maps 0 to itself, so a state of 0 would stay 0 for as many
/// words of zeros as follow; a constant is added. Both are bijections, so no difference between two
/// states is ever lost.
std::uint64_t mix_state(std::uint64_t bits) { return mix(bits) + 0x9e3779b97f4a7c15U; }

}  // namespace

std::uint64_t digest(std::string_view bytes, std::uint64_t before) {
  std::uint64_t state = mix_state(before ^ bytes.size());
  while (!bytes.empty()) {
    std::uint64_t word = 0;
    const std::size_t count = bytes.size() < sizeof word ? bytes.size() : sizeof word;
    std::memcpy(&word, bytes.data(), count);
    state = mix_state(state ^ word);
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
