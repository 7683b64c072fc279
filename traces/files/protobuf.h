// Writes protobuf's wire format: the few kinds of fields that traces need.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace bubblescope::traces {

/// One message that is being written; fields are appended in the order of the calls.
class ProtobufMessage {
 public:
  /// Writes a field of type uint32, uint64, bool, enum, int32 or int64; negative values as two's
  /// complement.
  ProtobufMessage& integer(std::uint32_t field, std::uint64_t value);
  ProtobufMessage& fixed64(std::uint32_t field, std::uint64_t value);
  ProtobufMessage& real(std::uint32_t field, double value);
  ProtobufMessage& text(std::uint32_t field, std::string_view value);
  ProtobufMessage& message(std::uint32_t field, const ProtobufMessage& value);
  /// Writes a repeated uint64, packed; nothing for an empty list.
  ProtobufMessage& integers(std::uint32_t field, std::span<const std::uint64_t> values);

  const std::string& bytes() const { return bytes_; }
  bool empty() const { return bytes_.empty(); }

 private:
  std::string bytes_;
};

/// Returns the message preceded by its length, as in files with several messages.
std::string with_length(const ProtobufMessage& message);

}  // namespace bubblescope::traces
