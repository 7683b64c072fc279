// The format is the sizes, then tokens and matrices.
#include "exec/training/saved_forward_blob.h"

#include <utility>

#include "exec/training/matrix_blob.h"

namespace bubblescope::exec {

Blob to_bytes(const SavedForward& kept) {
  BlobWriter writer;
  const Activations& saved = kept.saved;
  writer.write(held_bytes(kept));
  writer.write_all(saved.tokens.inputs);
  writer.write_all(saved.tokens.targets);
  write_matrix(writer, kept.input);
  for (const auto matrix : kHeadMatrices) write_matrix(writer, saved.*matrix);
  write_matrices(writer, saved.joined);
  writer.write(saved.blocks.size());
  for (const BlockActivations& block : saved.blocks)
    for (const auto matrix : kBlockMatrices) write_matrix(writer, block.*matrix);
  return writer.take();
}

SavedForward read_saved_forward(std::span<const std::byte> bytes) {
  BlobReader reader(bytes);
  reader.read<Bytes>();
  SavedForward kept;
  Activations& saved = kept.saved;
  saved.tokens.inputs = reader.read_all<std::int32_t>();
  saved.tokens.targets = reader.read_all<std::int32_t>();
  kept.input = read_matrix(reader);
  for (const auto matrix : kHeadMatrices) saved.*matrix = read_matrix(reader);
  saved.joined = read_matrices(reader);
  saved.blocks.resize(reader.checked_count(kBlockMatrices.size()));
  for (BlockActivations& block : saved.blocks)
    for (const auto matrix : kBlockMatrices) block.*matrix = read_matrix(reader);
  return kept;
}

Bytes held_bytes_of(const Blob& bytes) { return BlobReader(bytes).read<Bytes>(); }

void OffloadStore::put(const Op& copy, Blob bytes) {
  const std::lock_guard lock(mutex_);
  kept_[{copy.stage, copy.microbatch, copy.slice}] = std::move(bytes);
}

Blob OffloadStore::take(const Op& copy) {
  const std::lock_guard lock(mutex_);
  auto node = kept_.extract(Place{copy.stage, copy.microbatch, copy.slice});
  return node.empty() ? Blob() : std::move(node.mapped());
}

}  // namespace bubblescope::exec
