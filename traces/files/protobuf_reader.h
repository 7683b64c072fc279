// Reads protobuf's wire format: a message as its fields, in the order of the file.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace bubblescope::traces {

/// One field: its number, and its value as an integer (of 32 and 64 fixed bits, too) or as bytes.
struct ProtobufField {
  std::uint64_t number = 0;
  std::uint64_t integer = 0;
  std::string_view bytes = {};
  bool has_bytes = false;  ///< rather than an integer
};

class ProtobufReader {
 public:
  explicit ProtobufReader(std::string_view bytes) : rest_(bytes) {}

  bool at_end() const { return rest_.empty(); }
  /// Each returns nullopt where the bytes are damaged or cut short.
  std::optional<ProtobufField> field();
  std::optional<std::uint64_t> varint();
  /// Reads a message preceded by its length.
  std::optional<std::string_view> with_length();

 private:
  std::optional<std::uint64_t> fixed(std::size_t size);

  std::string_view rest_;
};

}  // namespace bubblescope::traces
