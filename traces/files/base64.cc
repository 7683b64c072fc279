// Base64 of RFC 4648: three bytes become four letters.
#include "traces/files/base64.h"

#include <cstddef>
#include <string_view>

namespace bubblescope::traces {

namespace {

constexpr std::size_t kPieceBytes = 3 << 16;
constexpr std::string_view kLetters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

void Base64Numbers::add(std::uint64_t number) {
  for (; number >= 0x80; number >>= 7) bytes_ += static_cast<char>((number & 0x7f) | 0x80);
  bytes_ += static_cast<char>(number);
  if (bytes_.size() >= kPieceBytes) encode_groups();
}

void Base64Numbers::add_signed(std::int64_t number) {
  const auto sign = static_cast<std::uint64_t>(number >> 63);
  add(static_cast<std::uint64_t>(number) << 1 ^ sign);
}

/// Encodes all whole groups of three bytes; the rest waits for its group.
void Base64Numbers::encode_groups() {
  std::string text;
  text.reserve(bytes_.size() / 3 * 4);
  std::size_t at = 0;
  for (; at + 3 <= bytes_.size(); at += 3) {
    std::uint32_t group = 0;
    for (std::size_t byte = 0; byte < 3; ++byte)
      group = group << 8 | static_cast<std::uint8_t>(bytes_[at + byte]);
    for (int shift = 18; shift >= 0; shift -= 6) text += kLetters[group >> shift & 0x3f];
  }
  bytes_.erase(0, at);
  if (!text.empty()) sink_(text);
}

void Base64Numbers::finish() {
  encode_groups();
  if (bytes_.empty()) return;
  const std::size_t letters = bytes_.size() + 1;
  bytes_.resize(3, '\0');
  std::string last;
  const Sink keep = [&last](std::string_view piece) { last = piece; };
  Base64Numbers rest(keep);
  rest.bytes_ = bytes_;
  rest.encode_groups();
  bytes_.clear();
  sink_(last.substr(0, letters) + std::string(4 - letters, '='));
}

}  // namespace bubblescope::traces
