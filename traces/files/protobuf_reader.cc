// Every length is checked against the bytes that are left.
#include "traces/files/protobuf_reader.h"

namespace bubblescope::traces {

namespace {

constexpr std::uint64_t kVarint = 0;
constexpr std::uint64_t kFixed64 = 1;
constexpr std::uint64_t kBytes = 2;
constexpr std::uint64_t kFixed32 = 5;

}  // namespace

std::optional<std::uint64_t> ProtobufReader::varint() {
  std::uint64_t value = 0;
  for (std::uint32_t shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(rest_.front());
    rest_.remove_prefix(1);
    value |= std::uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> ProtobufReader::fixed(std::size_t size) {
  if (rest_.size() < size) return std::nullopt;
  std::uint64_t value = 0;
  for (std::size_t at = size; at-- > 0;) value = value << 8 | static_cast<unsigned char>(rest_[at]);
  rest_.remove_prefix(size);
  return value;
}

std::optional<std::string_view> ProtobufReader::with_length() {
  const std::optional<std::uint64_t> size = varint();
  if (!size || *size > rest_.size()) return std::nullopt;
  const std::string_view taken = rest_.substr(0, *size);
  rest_.remove_prefix(*size);
  return taken;
}

std::optional<ProtobufField> ProtobufReader::field() {
  const std::optional<std::uint64_t> key = varint();
  if (!key) return std::nullopt;
  ProtobufField field{*key >> 3};
  std::optional<std::uint64_t> integer = 0;
  switch (*key & 7) {
    case kVarint: integer = varint(); break;
    case kFixed64: integer = fixed(8); break;
    case kFixed32: integer = fixed(4); break;
    case kBytes: {
      const std::optional<std::string_view> bytes = with_length();
      if (!bytes) return std::nullopt;
      field.bytes = *bytes;
      field.has_bytes = true;
      return field;
    }
    default: return std::nullopt;
  }
  if (!integer) return std::nullopt;
  field.integer = *integer;
  return field;
}

}  // namespace bubblescope::traces
