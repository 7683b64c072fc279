// Matrix by matrix.
#include "exec/gpu/gpu_evictions.h"

#include <utility>

#include "sim/ir/error.h"

namespace bubblescope {

namespace {

/// Empty: the host.
std::optional<std::int32_t> keeper_device(const GpuMachine& machine, const Schedule& schedule,
                                          std::int32_t rank) {
  const std::int32_t keeper = schedule.keeper_of_rank[static_cast<std::size_t>(rank)];
  if (keeper == rank) return std::nullopt;
  if (machine.runs(rank) && machine.runs(keeper)) return machine.place(keeper).device;
  throw Error("rank " + std::to_string(rank) + " evicts to rank " + std::to_string(keeper) +
              ", which runs in another process; that is not done yet: run both in one, as "
              "--backend cuda does");
}

}  // namespace

GpuEvictions::GpuEvictions(const GpuMachine& machine, const Schedule& schedule)
    : gpu_(machine.gpu()) {
  if (schedule.keeper_of_rank.empty()) return;
  for (std::int32_t rank = 0; rank < machine.ranks(); ++rank)
    elsewhere_.emplace_back(gpu_, keeper_device(machine, schedule, rank));
}

void GpuEvictions::share(const CertainOrder& order) {
  for (ActivationPool& pool : elsewhere_) pool.share(order);
}

void GpuEvictions::settle() {
  for (ActivationPool& pool : elsewhere_) pool.settle();
}

ActivationPool& GpuEvictions::pool_of(const Copy& copy) {
  ActivationPool& pool = elsewhere_[static_cast<std::size_t>(copy.rank)];
  pool.set_user(copy.id);
  return pool;
}

std::vector<GpuMatrix> GpuEvictions::move_out(const Copy& copy, ActivationPool& pool,
                                              const std::vector<GpuMatrix*>& matrices) {
  pool.set_user(copy.id);
  std::vector<GpuMatrix> elsewhere;
  for (GpuMatrix* const matrix : matrices) {
    const auto bytes = static_cast<std::size_t>(matrix->bytes());
    elsewhere.push_back(*matrix);
    elsewhere.back().data = pool_of(copy).take(bytes);
    gpu_.copy(elsewhere.back().data, matrix->data, bytes, copy.stream);
    if (matrix->pooled) pool.give(std::exchange(matrix->data, nullptr), bytes);
  }
  return elsewhere;
}

void GpuEvictions::move_back(const Copy& copy, ActivationPool& pool,
                             const std::vector<GpuMatrix>& elsewhere,
                             const std::vector<GpuMatrix*>& matrices) {
  pool.set_user(copy.id);
  for (std::size_t at = 0; at < elsewhere.size(); ++at) {
    GpuMatrix& matrix = *matrices[at];
    const auto bytes = static_cast<std::size_t>(matrix.bytes());
    if (matrix.pooled) matrix.data = pool.take(bytes);
    gpu_.copy(matrix.data, elsewhere[at].data, bytes, copy.stream);
    pool_of(copy).give(elsewhere[at].data, bytes);
  }
}

}  // namespace bubblescope
