// The backend `cpu`: all ranks run in this process, with one thread per lane.
#include <memory>
#include <utility>

#include "exec/runtime/worker_pool.h"

namespace bubblescope::exec {

namespace {

class CpuBackend : public Backend {
 public:
  CpuBackend(BackendRequest request, const Program& program)
      : request_(std::move(request)), program_(program), pool_(request_, program) {}

  std::vector<RankResult> run_step() override {
    pool_.await_threads();
    pool_.run_step(read_monotonic_clock());
    std::vector<RankResult> results;
    for (std::int32_t rank = 0; rank < program_.ranks; ++rank)
      results.push_back(pool_.result(rank));
    return results;
  }

 private:
  BackendRequest request_;
  const Program& program_;
  WorkerPool pool_;
};

const BackendRegistrar cpu_registrar{[] {
  return BackendDef{
      .name = "cpu",
      .aliases = {"threads"},
      .summary = "all ranks in one process, one thread per lane",
      .make = [](BackendRequest request, const Program& program) -> std::unique_ptr<Backend> {
        return std::make_unique<CpuBackend>(std::move(request), program);
      }};
}};

}  // namespace

}  // namespace bubblescope::exec
