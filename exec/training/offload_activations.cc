// Moves activations, and counts the memory of both ranks.
#include "exec/training/offload_activations.h"

#include <utility>

#include "exec/training/stage_passes.h"

namespace bubblescope::exec {

/// Allocates the copy before it frees the original, as a real copy does.
void OffloadedActivations::move_out(const Instruction& evict) {
  MicrobatchState& state = stages_.state_of(evict.op);
  if (!state.kept) refuse_before(evict.op, "its forward has run");
  const bool host = evict.peer == evict.rank;
  if (!host) stages_.add_held(evict.peer, held_bytes(*state.kept));
  if (host || stages_.processes().runs(evict.peer)) state.offloaded = *state.kept;
  state.kept.reset();
  stages_.set_held(evict.op, stages_.context_bytes(evict.op));
}

void OffloadedActivations::move_back(const Instruction& load) {
  MicrobatchState& state = stages_.state_of(load.op);
  if (!state.offloaded) refuse_before(load.op, "its EVICT has run");
  state.kept = *state.offloaded;
  const Bytes moved = held_bytes(*state.kept);
  stages_.set_held(load.op, moved + stages_.context_bytes(load.op));
  state.offloaded.reset();
  const bool host = load.peer == load.rank;
  if (!host) stages_.add_held(load.peer, -moved);
}

Blob OffloadedActivations::pack(const Instruction& copy) {
  if (copy.op.kind == OpKind::kLoad) return {};
  const MicrobatchState& state = stages_.state_of(copy.op);
  if (!state.kept) refuse_before(copy.op, "its forward has run");
  return to_bytes(*state.kept);
}

Blob OffloadedActivations::keep(const Instruction& copy, std::span<const std::byte> bytes) {
  if (copy.op.kind == OpKind::kEvict) {
    Blob kept(bytes.begin(), bytes.end());
    stages_.add_held(copy.peer, held_bytes_of(kept));
    store_.put(copy.op, std::move(kept));
    return {};
  }
  Blob kept = store_.take(copy.op);
  if (!kept.empty()) stages_.add_held(copy.peer, -held_bytes_of(kept));
  return kept;
}

void OffloadedActivations::unpack(const Instruction& copy, std::span<const std::byte> bytes) {
  if (copy.op.kind == OpKind::kLoad && !bytes.empty())
    stages_.state_of(copy.op).offloaded = read_saved_forward(bytes);
}

}  // namespace bubblescope::exec
