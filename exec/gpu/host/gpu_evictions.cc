// Offloads activations matrix by matrix.
#include "exec/gpu/host/gpu_evictions.h"

#include <optional>
#include <utility>

#include "exec/gpu/host/pool_dry_run.h"
#include "sim/ir/error.h"

namespace bubblescope::exec {

namespace {

/// Returns the device of the offload target; empty for the host.
std::optional<std::int32_t> target_device(const GpuMachine& machine, const Schedule& schedule,
                                          std::int32_t rank) {
  const std::int32_t target = schedule.offload_target_of_rank[static_cast<std::size_t>(rank)];
  if (target == rank) return std::nullopt;
  return machine.place(target).device;
}

}  // namespace

Bytes bytes_of(const GpuBuffers& buffers) {
  Bytes bytes = 0;
  for (const GpuBuffer& buffer : buffers) bytes += static_cast<Bytes>(buffer.bytes);
  return bytes;
}

GpuBuffers release_for_evict(ActivationPool& pool, const std::vector<GpuMatrix*>& matrices) {
  GpuBuffers left;
  for (GpuMatrix* const matrix : matrices) {
    left.push_back(buffer_of(*matrix));
    if (matrix->pooled) pool.release(std::exchange(matrix->data, nullptr), left.back().bytes);
  }
  return left;
}

GpuBuffers acquire_for_load(ActivationPool& pool, const std::vector<GpuMatrix*>& matrices) {
  GpuBuffers back;
  for (GpuMatrix* const matrix : matrices) {
    if (matrix->pooled) matrix->data = pool.acquire(buffer_of(*matrix).bytes);
    back.push_back(buffer_of(*matrix));
  }
  return back;
}

GpuEvictions::GpuEvictions(const GpuMachine& machine, const JobRequest& job) : gpu_(machine.gpu()) {
  const Schedule& schedule = job.schedule;
  if (schedule.offload_target_of_rank.empty()) return;
  for (std::int32_t rank = 0; rank < machine.ranks(); ++rank)
    pools_.emplace_back(gpu_, target_device(machine, schedule, rank));
  for (std::int32_t stage = 0; stage < schedule.stages(); ++stage) {
    const std::int32_t rank = schedule.rank_of_stage[static_cast<std::size_t>(stage)];
    const std::int32_t target = schedule.offload_target_of_rank[static_cast<std::size_t>(rank)];
    if (machine.runs(rank) || !machine.runs(target)) continue;
    for (const SlicePool& slice : dry_run_stage(schedule, *job.training, job.device, stage)) {
      GpuBuffers& buffers = expected_[stage].emplace_back();
      for (const Bytes bytes : slice.leaving)
        buffers.push_back({nullptr, static_cast<std::size_t>(bytes)});
    }
  }
}

void GpuEvictions::set_order(const HappensBefore& order) {
  for (ActivationPool& pool : pools_) pool.set_order(order);
}

void GpuEvictions::forget_users() {
  for (ActivationPool& pool : pools_) pool.forget_users();
}

ActivationPool& GpuEvictions::pool_of(InstructionId id, const Instruction& copy) {
  ActivationPool& pool = pools_[static_cast<std::size_t>(copy.rank)];
  pool.set_user(id);
  return pool;
}

GpuBuffers GpuEvictions::acquire_offloaded(InstructionId id, const Instruction& evict,
                                           const GpuBuffers& sizes) {
  ActivationPool& pool = pool_of(id, evict);
  GpuBuffers& kept = kept_[{evict.op.stage, evict.op.microbatch, evict.op.slice}];
  kept.clear();
  for (const GpuBuffer& size : sizes) kept.push_back({pool.acquire(size.bytes), size.bytes});
  return kept;
}

GpuBuffers GpuEvictions::release_offloaded(InstructionId id, const Instruction& load) {
  const auto kept = kept_.find({load.op.stage, load.op.microbatch, load.op.slice});
  if (kept == kept_.end())
    throw Error(Fault::kProblem, to_string(load.op) + " runs before its EVICT");
  GpuBuffers buffers = std::move(kept->second);
  kept_.erase(kept);
  ActivationPool& pool = pool_of(id, load);
  for (const GpuBuffer& buffer : buffers) pool.release(buffer.data, buffer.bytes);
  return buffers;
}

void GpuEvictions::copy(const GpuBuffers& to, const GpuBuffers& from, void* stream) const {
  for (std::size_t at = 0; at < from.size(); ++at)
    gpu_.copy(to[at].data, from[at].data, from[at].bytes, stream);
}

}  // namespace bubblescope::exec
