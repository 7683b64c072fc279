// Copies bytes with bounds checks.
#include "exec/runtime/blob.h"

#include <cstring>
#include <utility>

#include "sim/ir/error.h"

namespace bubblescope::exec {

namespace {

[[noreturn]] void refuse() {
  throw Error(Fault::kMachine,
              "there are fewer bytes than announced; they were damaged, or not all processes run "
              "the same program");
}

}  // namespace

Blob BlobWriter::take() { return std::move(bytes_); }

void BlobWriter::append(const void* bytes, std::size_t size) {
  const auto* const begin = static_cast<const std::byte*>(bytes);
  if (size != 0) bytes_.insert(bytes_.end(), begin, begin + size);
}

std::size_t BlobReader::checked_count(std::size_t size_of_one) {
  const auto count = read<std::size_t>();
  if (count > bytes_.size() / size_of_one) refuse();
  return count;
}

void BlobReader::copy(void* target, std::size_t size) {
  if (size > bytes_.size()) refuse();
  if (size != 0) std::memcpy(target, bytes_.data(), size);
  bytes_ = bytes_.subspan(size);
}

}  // namespace bubblescope::exec
