// Computes checksums of payloads, and serializes them.
#include "exec/training/payload.h"

#include <bit>
#include <cstring>
#include <utility>

namespace bubblescope::exec {

namespace {

/// Returns a checksum of the entries and their order.
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

Payload seal(Matrix matrix, Damage damage) {
  Payload payload{std::move(matrix), std::nullopt};
  Matrix& sent = payload.matrix;
  payload.checksum = checksum_of(sent);
  if (damage == Damage::kWrongSize) sent = Matrix(sent.rows + 1, sent.columns);
  if (damage == Damage::kGarbage)
    for (float& value : sent.values)
      value = std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) ^ 0x5a5a5a5aU);
  return payload;
}

std::string find_damage(const Payload& payload, std::int32_t rows, std::int32_t columns) {
  const Matrix& matrix = payload.matrix;
  const auto entries = static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns);
  if (matrix.rows != rows || matrix.columns != columns || matrix.values.size() != entries)
    return "a wrong size: " + shape_text(matrix.rows, matrix.columns) + " entries instead of " +
           shape_text(rows, columns);
  if (payload.checksum && *payload.checksum != checksum_of(matrix))
    return "an invalid message: the payload does not match its checksum";
  return "";
}

Blob pack(const Payload& payload) {
  const Header header{payload.matrix.rows, payload.matrix.columns, payload.checksum.value_or(0)};
  const std::size_t size = payload.matrix.values.size() * sizeof(float);
  Blob bytes(sizeof header + size);
  std::memcpy(bytes.data(), &header, sizeof header);
  if (size != 0) std::memcpy(bytes.data() + sizeof header, payload.matrix.values.data(), size);
  return bytes;
}

Payload unpack(std::span<const std::byte> bytes) {
  Header header;
  if (bytes.size() < sizeof header) return {{}, 0};
  std::memcpy(&header, bytes.data(), sizeof header);
  const std::span<const std::byte> entries = bytes.subspan(sizeof header);
  Payload payload;
  payload.checksum = header.checksum;
  payload.matrix.rows = header.rows;
  payload.matrix.columns = header.columns;
  payload.matrix.values.resize(entries.size() / sizeof(float));
  if (!payload.matrix.values.empty())
    std::memcpy(payload.matrix.values.data(), entries.data(),
                payload.matrix.values.size() * sizeof(float));
  return payload;
}

}  // namespace bubblescope::exec
