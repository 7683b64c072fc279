// Offloads activations matrix by matrix.
#include "exec/gpu/host/gpu_evictions.h"

#include <optional>
#include <utility>

#include "exec/gpu/host/pool_trial.h"
#include "sim/ir/error.h"

namespace bubblescope {

namespace {

/// The device of the offload target; empty for the host.
std::optional<std::int32_t> keeper_device(const GpuMachine& machine, const Schedule& schedule,
                                          std::int32_t rank) {
  const std::int32_t keeper = schedule.keeper_of_rank[static_cast<std::size_t>(rank)];
  if (keeper == rank) return std::nullopt;
  return machine.place(keeper).device;
}

}  // namespace

Bytes bytes_of(const GpuPieces& pieces) {
  Bytes bytes = 0;
  for (const GpuPiece& piece : pieces) bytes += static_cast<Bytes>(piece.bytes);
  return bytes;
}

GpuPieces leave(ActivationPool& pool, const std::vector<GpuMatrix*>& matrices) {
  GpuPieces left;
  for (GpuMatrix* const matrix : matrices) {
    left.push_back(piece_of(*matrix));
    if (matrix->pooled) pool.give(std::exchange(matrix->data, nullptr), left.back().bytes);
  }
  return left;
}

GpuPieces come_back(ActivationPool& pool, const std::vector<GpuMatrix*>& matrices) {
  GpuPieces back;
  for (GpuMatrix* const matrix : matrices) {
    if (matrix->pooled) matrix->data = pool.take(piece_of(*matrix).bytes);
    back.push_back(piece_of(*matrix));
  }
  return back;
}

GpuEvictions::GpuEvictions(const GpuMachine& machine, const JobRequest& job) : gpu_(machine.gpu()) {
  const Schedule& schedule = job.schedule;
  if (schedule.keeper_of_rank.empty()) return;
  for (std::int32_t rank = 0; rank < machine.ranks(); ++rank)
    pools_.emplace_back(gpu_, keeper_device(machine, schedule, rank));
  for (std::int32_t stage = 0; stage < schedule.stages(); ++stage) {
    const std::int32_t rank = schedule.rank_of_stage[static_cast<std::size_t>(stage)];
    const std::int32_t keeper = schedule.keeper_of_rank[static_cast<std::size_t>(rank)];
    if (machine.runs(rank) || !machine.runs(keeper)) continue;
    for (const SlicePool& slice : try_stage(schedule, *job.training, job.device, stage)) {
      GpuPieces& pieces = expected_[stage].emplace_back();
      for (const Bytes bytes : slice.leaving)
        pieces.push_back({nullptr, static_cast<std::size_t>(bytes)});
    }
  }
}

void GpuEvictions::share(const CertainOrder& order) {
  for (ActivationPool& pool : pools_) pool.share(order);
}

void GpuEvictions::settle() {
  for (ActivationPool& pool : pools_) pool.settle();
}

ActivationPool& GpuEvictions::pool_of(InstructionId id, const Instruction& copy) {
  ActivationPool& pool = pools_[static_cast<std::size_t>(copy.rank)];
  pool.set_user(id);
  return pool;
}

GpuPieces GpuEvictions::keep(InstructionId id, const Instruction& evict, const GpuPieces& sizes) {
  ActivationPool& pool = pool_of(id, evict);
  GpuPieces& kept = kept_[{evict.op.stage, evict.op.microbatch, evict.op.slice}];
  kept.clear();
  for (const GpuPiece& size : sizes) kept.push_back({pool.take(size.bytes), size.bytes});
  return kept;
}

GpuPieces GpuEvictions::give_up(InstructionId id, const Instruction& load) {
  const auto kept = kept_.find({load.op.stage, load.op.microbatch, load.op.slice});
  if (kept == kept_.end())
    throw Error(Fault::kProblem, to_string(load.op) + " runs before anything of it was evicted");
  GpuPieces pieces = std::move(kept->second);
  kept_.erase(kept);
  ActivationPool& pool = pool_of(id, load);
  for (const GpuPiece& piece : pieces) pool.give(piece.data, piece.bytes);
  return pieces;
}

void GpuEvictions::copy(const GpuPieces& to, const GpuPieces& from, void* stream) const {
  for (std::size_t at = 0; at < from.size(); ++at)
    gpu_.copy(to[at].data, from[at].data, from[at].bytes, stream);
}

}  // namespace bubblescope
