// The backend behind a job of one process per rank.
#include <memory>
#include <utility>

#include "exec/nccl/nccl_crew.h"
#include "exec/nccl/nccl_place.h"
#include "sim/ir/error.h"

namespace bubblescope {

namespace {

/// Every process has all ranks' workers; they share the one crew.
class NcclWorker : public RankWorker {
 public:
  NcclWorker(std::int32_t rank, NcclCrew& crew) : rank_(rank), crew_(crew) {}

  void enqueue(InstructionId) override { crew_.enqueue(); }
  RankResult finish() override { return crew_.finish(rank_); }

 private:
  std::int32_t rank_;
  NcclCrew& crew_;
};

class NcclBackend : public Backend {
 public:
  NcclBackend(const NcclPlace& place, const JobRequest& job, BackendRequest request)
      : program_(job.program), crew_(place, job, std::move(request)) {}

  std::unique_ptr<RankWorker> open(std::int32_t rank, const Program& program) override {
    if (&program != &program_)
      throw Error(Fault::kProblem, "a job on GPUs runs the program that it was started for");
    return std::make_unique<NcclWorker>(rank, crew_);
  }

  NcclCrew& crew() { return crew_; }

 private:
  const Program& program_;
  NcclCrew crew_;
};

}  // namespace

Job start_nccl_job(const NcclPlace& place, const JobRequest& job, BackendRequest request) {
  std::unique_ptr<NcclBackend> backend;
  try {
    backend = std::make_unique<NcclBackend>(place, job, std::move(request));
  } catch (const Error& error) {
    StepLink(place.link, {}).tell_failure(error.what());
    throw;
  }
  Job started;
  started.device = backend->crew().describe();
  started.buses = backend->crew().buses();
  started.copies = backend->crew().copies();
  if (NcclTraining* const training = backend->crew().training()) {
    started.after_step = [training] { training->finish_step(); };
    started.result = [training] { return training->result(); };
    started.epilogues = [training] { return training->epilogues(); };
    started.peak_bytes = [training] { return training->peak_bytes(); };
  }
  started.backend = std::move(backend);
  return started;
}

}  // namespace bubblescope
