// Sums up the sizes of matrices.
#include "exec/training/held_bytes.h"

namespace bubblescope::exec {

Bytes held_bytes(const Activations& saved) {
  Bytes bytes = 0;
  for (const auto matrix : kHeadMatrices) bytes += (saved.*matrix).bytes();
  for (const Matrix& input : saved.joined) bytes += input.bytes();
  for (const BlockActivations& block : saved.blocks)
    for (const auto matrix : kBlockMatrices) bytes += (block.*matrix).bytes();
  return bytes;
}

Bytes held_bytes(const SavedForward& kept) { return kept.input.bytes() + held_bytes(kept.saved); }

Bytes held_bytes(const WeightWork& work) {
  Bytes bytes = work.embedded_grad.bytes();
  for (const WeightGemm& pair : work.gemms) bytes += pair.left.bytes() + pair.right.bytes();
  for (const GainGrad& gain : work.gains) bytes += gain.grad.bytes();
  return bytes;
}

}  // namespace bubblescope::exec
