// Varints and lengths follow https://protobuf.dev/programming-guides/encoding/.
#include "traces/files/protobuf.h"

#include <bit>

namespace bubblescope::traces {

namespace {

constexpr std::uint64_t kVarint = 0;
constexpr std::uint64_t kFixed64 = 1;
constexpr std::uint64_t kLengthDelimited = 2;

void append_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>((value & 0x7f) | 0x80);
  out += static_cast<char>(value);
}

void append_bytes(std::string& out, std::uint32_t field, std::string_view bytes) {
  append_varint(out, std::uint64_t{field} << 3 | kLengthDelimited);
  append_varint(out, bytes.size());
  out += bytes;
}

}  // namespace

ProtobufMessage& ProtobufMessage::integer(std::uint32_t field, std::uint64_t value) {
  append_varint(bytes_, std::uint64_t{field} << 3 | kVarint);
  append_varint(bytes_, value);
  return *this;
}

ProtobufMessage& ProtobufMessage::fixed64(std::uint32_t field, std::uint64_t value) {
  append_varint(bytes_, std::uint64_t{field} << 3 | kFixed64);
  for (int shift = 0; shift < 64; shift += 8) bytes_ += static_cast<char>(value >> shift & 0xff);
  return *this;
}

ProtobufMessage& ProtobufMessage::real(std::uint32_t field, double value) {
  return fixed64(field, std::bit_cast<std::uint64_t>(value));
}

ProtobufMessage& ProtobufMessage::text(std::uint32_t field, std::string_view value) {
  append_bytes(bytes_, field, value);
  return *this;
}

ProtobufMessage& ProtobufMessage::message(std::uint32_t field, const ProtobufMessage& value) {
  append_bytes(bytes_, field, value.bytes_);
  return *this;
}

ProtobufMessage& ProtobufMessage::integers(std::uint32_t field,
                                           std::span<const std::uint64_t> values) {
  if (values.empty()) return *this;
  std::string packed;
  for (const std::uint64_t value : values) append_varint(packed, value);
  append_bytes(bytes_, field, packed);
  return *this;
}

std::string with_length(const ProtobufMessage& message) {
  std::string out;
  append_varint(out, message.bytes().size());
  return out + message.bytes();
}

}  // namespace bubblescope::traces
