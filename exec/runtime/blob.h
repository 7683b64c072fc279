// Serialization of values into messages between the processes of one run. Values are copied byte by
// byte, since all processes run the same program on the same kind of machine.
//
//   BlobWriter writer;                  BlobReader reader(blob);
//   writer.write(step);                 const auto step = reader.read<std::uint32_t>();
//   writer.write_text("it failed");     const std::string text = reader.read_text();
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace bubblescope::exec {

using Blob = std::vector<std::byte>;

class BlobWriter {
 public:
  template <class Value>
  void write(const Value& value) {
    static_assert(std::is_trivially_copyable_v<Value>);
    append(&value, sizeof value);
  }

  template <class Value>
  void write_all(const std::vector<Value>& values) {
    static_assert(std::is_trivially_copyable_v<Value>);
    write(values.size());
    append(values.data(), values.size() * sizeof(Value));
  }

  void write_text(const std::string& text) {
    write(text.size());
    append(text.data(), text.size());
  }

  Blob take();

 private:
  void append(const void* bytes, std::size_t size);

  Blob bytes_;
};

/// Returns a blob that holds one value.
template <class Value>
Blob blob_of(const Value& value) {
  BlobWriter writer;
  writer.write(value);
  return writer.take();
}

/// A blob that holds a header and the bytes that it precedes, with their number.
template <class Header>
Blob blob_of(const Header& header, const Blob& payload) {
  BlobWriter writer;
  writer.write(header);
  writer.write_all(payload);
  return writer.take();
}

/// Reads values in the order in which they were written. Throws Error (Fault::kMachine) if too few
/// bytes are left.
class BlobReader {
 public:
  /// `bytes` is not copied.
  explicit BlobReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <class Value>
  Value read() {
    static_assert(std::is_trivially_copyable_v<Value>);
    Value value{};
    copy(&value, sizeof value);
    return value;
  }

  template <class Value>
  std::vector<Value> read_all() {
    std::vector<Value> values(checked_count(sizeof(Value)));
    copy(values.data(), values.size() * sizeof(Value));
    return values;
  }

  std::string read_text() {
    std::string text(checked_count(1), ' ');
    copy(text.data(), text.size());
    return text;
  }

  /// Reads the number of elements that follow. Throws if this many elements of at least
  /// `size_of_one` bytes do not fit in the remaining bytes, before anything is allocated.
  std::size_t checked_count(std::size_t size_of_one);

  std::span<const std::byte> rest() const { return bytes_; }

 private:
  void copy(void* target, std::size_t size);

  std::span<const std::byte> bytes_;
};

}  // namespace bubblescope::exec
