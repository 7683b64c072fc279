// Implements SHA-256 and HMAC.
#include "exec/nccl/keyed_hash.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace bubblescope::exec {

namespace {

constexpr std::size_t kBlock = 64;

using State = std::array<std::uint32_t, 8>;

constexpr State kStart{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                       0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

constexpr std::array<std::uint32_t, 64> kRounds{
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

std::array<std::uint32_t, 64> expand(std::span<const std::byte> block) {
  std::array<std::uint32_t, 64> words{};
  for (std::size_t at = 0; at < kBlock; ++at)
    words[at / 4] = words[at / 4] << 8 | std::to_integer<std::uint32_t>(block[at]);
  for (std::size_t at = 16; at < words.size(); ++at) {
    const std::uint32_t early = words[at - 15];
    const std::uint32_t late = words[at - 2];
    const std::uint32_t low = std::rotr(early, 7) ^ std::rotr(early, 18) ^ (early >> 3);
    const std::uint32_t high = std::rotr(late, 17) ^ std::rotr(late, 19) ^ (late >> 10);
    words[at] = words[at - 16] + low + words[at - 7] + high;
  }
  return words;
}

/// The names of the variables are those of FIPS 180-4.
void mix(State& state, std::span<const std::byte> block) {
  const std::array<std::uint32_t, 64> words = expand(block);
  auto [a, b, c, d, e, f, g, h] = state;
  for (std::size_t round = 0; round < words.size(); ++round) {
    const std::uint32_t high = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const std::uint32_t first = h + high + ((e & f) ^ (~e & g)) + kRounds[round] + words[round];
    const std::uint32_t low = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const std::uint32_t second = low + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + first;
    d = c;
    c = b;
    b = a;
    a = first + second;
  }
  const State mixed{a, b, c, d, e, f, g, h};
  for (std::size_t at = 0; at < state.size(); ++at) state[at] += mixed[at];
}

/// Pads the message to whole blocks: a one bit, zeros, and the length in bits.
std::vector<std::byte> pad(std::span<const std::byte> message) {
  std::vector<std::byte> padded(message.begin(), message.end());
  padded.push_back(std::byte{0x80});
  while (padded.size() % kBlock != kBlock - 8) padded.push_back(std::byte{0});
  const std::uint64_t bits = std::uint64_t{message.size()} * 8;
  for (int shift = 56; shift >= 0; shift -= 8)
    padded.push_back(static_cast<std::byte>(bits >> shift & 0xff));
  return padded;
}

}  // namespace

Digest hash_sha256(std::span<const std::byte> message) {
  const std::vector<std::byte> padded = pad(message);
  State state = kStart;
  for (std::size_t begin = 0; begin < padded.size(); begin += kBlock)
    mix(state, std::span(padded).subspan(begin, kBlock));
  Digest digest{};
  for (std::size_t at = 0; at < digest.size(); ++at)
    digest[at] = static_cast<std::byte>(state[at / 4] >> (24 - 8 * (at % 4)) & 0xff);
  return digest;
}

Digest hash_with_key(std::string_view key, std::span<const std::byte> message) {
  std::array<std::byte, kBlock> block{};
  const auto bytes = std::as_bytes(std::span(key));
  const Digest short_key = hash_sha256(bytes);
  const std::span<const std::byte> used = bytes.size() > kBlock ? std::span(short_key) : bytes;
  std::copy(used.begin(), used.end(), block.begin());
  const auto wrap = [&block](std::byte pattern, std::span<const std::byte> inner) {
    std::vector<std::byte> text;
    for (const std::byte byte : block) text.push_back(byte ^ pattern);
    text.insert(text.end(), inner.begin(), inner.end());
    return hash_sha256(text);
  };
  return wrap(std::byte{0x5c}, wrap(std::byte{0x36}, message));
}

bool are_equal(const Digest& one, const Digest& other) {
  std::byte difference{0};
  for (std::size_t at = 0; at < one.size(); ++at) difference |= one[at] ^ other[at];
  return difference == std::byte{0};
}

}  // namespace bubblescope::exec
