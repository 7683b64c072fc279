// Offloads activations to other memory and loads them back.
#include <utility>

#include "exec/training/saved_forward_blob.h"
#include "exec/training/training.h"
#include "sim/ir/error.h"

namespace bubblescope::exec {

/// Allocates the copy before it frees the original, as a real copy does.
void Training::move_out(const Instruction& evict) {
  MicrobatchState& state = state_of(evict.op);
  if (!state.kept) refuse_before(evict.op, "its forward has run");
  const bool host = evict.peer == evict.rank;
  if (!host) memory_[static_cast<std::size_t>(evict.peer)].add(held_bytes(*state.kept));
  if (is_offloaded_here(evict)) state.offloaded = *state.kept;
  state.kept.reset();
  set_held(evict.op, context_bytes(evict.op));
}

void Training::move_back(const Instruction& load) {
  MicrobatchState& state = state_of(load.op);
  if (!state.offloaded) refuse_before(load.op, "its EVICT has run");
  state.kept = *state.offloaded;
  const Bytes moved = held_bytes(*state.kept);
  set_held(load.op, moved + context_bytes(load.op));
  state.offloaded.reset();
  const bool host = load.peer == load.rank;
  if (!host) memory_[static_cast<std::size_t>(load.peer)].add(-moved);
}

bool Training::is_offloaded_here(const Instruction& copy) const {
  return copy.peer == copy.rank || processes_.runs(copy.peer);
}

/// Packs the activations that an EVICT sends to its offload target; a LOAD sends a request without
/// data.
Blob Training::pack_copy(const Instruction& copy) {
  if (copy.op.kind == OpKind::kLoad) return {};
  const MicrobatchState& state = state_of(copy.op);
  if (!state.kept) refuse_before(copy.op, "its forward has run");
  return to_bytes(*state.kept);
}

/// Runs in the process of the offload target; the result is the reply to a LOAD.
Blob Training::keep(const Instruction& copy, std::span<const std::byte> bytes) {
  RankMemory& memory = memory_[static_cast<std::size_t>(copy.peer)];
  if (copy.op.kind == OpKind::kEvict) {
    Blob kept(bytes.begin(), bytes.end());
    memory.add(held_bytes_of(kept));
    offload_store_.put(copy.op, std::move(kept));
    return {};
  }
  Blob kept = offload_store_.take(copy.op);
  if (!kept.empty()) memory.add(-held_bytes_of(kept));
  return kept;
}

/// Stores the received activations for the LOAD itself.
void Training::unpack_copy(const Instruction& copy, std::span<const std::byte> bytes) {
  if (copy.op.kind == OpKind::kLoad && !bytes.empty())
    state_of(copy.op).offloaded = read_saved_forward(bytes);
}

}  // namespace bubblescope::exec
