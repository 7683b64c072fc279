// SHA-256 as FIPS 180-4 states it.
#include "tests/golden/sha256.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace bubblescope {
namespace {

using State = std::array<std::uint32_t, 8>;
using Block = std::array<std::uint32_t, 64>;

constexpr std::array<std::uint32_t, 64> kRoundConstants = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

/// The message, a one bit, zeros, and the length in bits: a multiple of 64 bytes.
std::string pad(std::string_view message) {
  std::string padded(message);
  padded += '\x80';
  while (padded.size() % 64 != 56) padded += '\0';
  const std::uint64_t bits = message.size() * 8;
  for (int shift = 56; shift >= 0; shift -= 8) padded += static_cast<char>(bits >> shift & 0xff);
  return padded;
}

Block expand(std::string_view bytes) {
  Block words{};
  for (std::size_t at = 0; at < 64; ++at)
    words[at / 4] = words[at / 4] << 8 | static_cast<unsigned char>(bytes[at]);
  for (std::size_t at = 16; at < 64; ++at) {
    const std::uint32_t w15 = words[at - 15];
    const std::uint32_t w2 = words[at - 2];
    const std::uint32_t s0 = std::rotr(w15, 7) ^ std::rotr(w15, 18) ^ w15 >> 3;
    const std::uint32_t s1 = std::rotr(w2, 17) ^ std::rotr(w2, 19) ^ w2 >> 10;
    words[at] = words[at - 16] + s0 + words[at - 7] + s1;
  }
  return words;
}

void compress(State& state, const Block& words) {
  auto [a, b, c, d, e, f, g, h] = state;
  for (std::size_t round = 0; round < 64; ++round) {
    const std::uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const std::uint32_t choice = (e & f) ^ (~e & g);
    const std::uint32_t first = h + s1 + choice + kRoundConstants[round] + words[round];
    const std::uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const std::uint32_t majority = (a & b) ^ (a & c) ^ (b & c);
    h = g, g = f, f = e, e = d + first;
    d = c, c = b, b = a, a = first + s0 + majority;
  }
  const State change = {a, b, c, d, e, f, g, h};
  for (std::size_t at = 0; at < state.size(); ++at) state[at] += change[at];
}

}  // namespace

std::string sha256(std::string_view message) {
  State state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  const std::string padded = pad(message);
  for (std::size_t begin = 0; begin < padded.size(); begin += 64)
    compress(state, expand(std::string_view(padded).substr(begin, 64)));
  std::string digest;
  for (const std::uint32_t word : state)
    for (int shift = 28; shift >= 0; shift -= 4) digest += "0123456789abcdef"[word >> shift & 0xf];
  return digest;
}

}  // namespace bubblescope
