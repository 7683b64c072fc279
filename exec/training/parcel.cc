// Checksums and serialization of payloads.
#include "exec/training/parcel.h"

#include <bit>
#include <cstring>
#include <utility>

namespace bubblescope {

namespace {

/// A checksum of the entries and their order.
std::uint64_t checksum_of(const Matrix& matrix) {
  std::uint64_t sum = 0;
  for (const float value : matrix.values)
    sum = sum * 0x9e3779b97f4a7c15ULL + std::bit_cast<std::uint32_t>(value);
  return sum;
}

/// Precedes the entries. Both ends run the same program on the same kind of machine.
struct Header {
  std::int32_t rows = 0;
  std::int32_t columns = 0;
  std::uint64_t checksum = 0;
};

std::string shape_text(std::int64_t rows, std::int64_t columns) {
  return std::to_string(rows) + " x " + std::to_string(columns);
}

}  // namespace

Parcel seal(Matrix matrix, Damage damage) {
  Parcel parcel{std::move(matrix), std::nullopt};
  Matrix& sent = parcel.matrix;
  parcel.checksum = checksum_of(sent);
  if (damage == Damage::kWrongSize) sent = Matrix(sent.rows + 1, sent.columns);
  if (damage == Damage::kGarbage)
    for (float& value : sent.values)
      value = std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) ^ 0x5a5a5a5aU);
  return parcel;
}

std::string find_damage(const Parcel& parcel, std::int32_t rows, std::int32_t columns) {
  const Matrix& matrix = parcel.matrix;
  const auto entries = static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns);
  if (matrix.rows != rows || matrix.columns != columns || matrix.values.size() != entries)
    return "a wrong size: " + shape_text(matrix.rows, matrix.columns) + " entries instead of " +
           shape_text(rows, columns);
  if (parcel.checksum && *parcel.checksum != checksum_of(matrix))
    return "garbage: what arrived does not have the checksum of what was sent";
  return "";
}

Blob pack(const Parcel& parcel) {
  const Header header{parcel.matrix.rows, parcel.matrix.columns, parcel.checksum.value_or(0)};
  const std::size_t size = parcel.matrix.values.size() * sizeof(float);
  Blob bytes(sizeof header + size);
  std::memcpy(bytes.data(), &header, sizeof header);
  if (size != 0) std::memcpy(bytes.data() + sizeof header, parcel.matrix.values.data(), size);
  return bytes;
}

Parcel unpack(std::span<const std::byte> bytes) {
  Header header;
  if (bytes.size() < sizeof header) return {{}, 0};
  std::memcpy(&header, bytes.data(), sizeof header);
  const std::span<const std::byte> entries = bytes.subspan(sizeof header);
  Parcel parcel;
  parcel.checksum = header.checksum;
  parcel.matrix.rows = header.rows;
  parcel.matrix.columns = header.columns;
  parcel.matrix.values.resize(entries.size() / sizeof(float));
  if (!parcel.matrix.values.empty())
    std::memcpy(parcel.matrix.values.data(), entries.data(),
                parcel.matrix.values.size() * sizeof(float));
  return parcel;
}

}  // namespace bubblescope
