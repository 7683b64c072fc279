// The backend `cpu`: all ranks in this process, one thread per lane.
#include <memory>
#include <optional>
#include <utility>

#include "exec/lane_crew.h"

namespace bubblescope {

namespace {

class CpuWorker : public RankWorker {
 public:
  CpuWorker(std::int32_t rank, const Program& program, LaneCrew& crew)
      : rank_(rank), program_(program), crew_(crew), lanes_(program.lanes.size()) {
    for (std::size_t lane = 0; lane < lanes_.size(); ++lane)
      if (program.lanes[lane].rank == rank) lanes_[lane] = std::make_unique<LaneThread>(crew);
  }

  ~CpuWorker() override { crew_.close(); }
  CpuWorker(const CpuWorker&) = delete;
  CpuWorker& operator=(const CpuWorker&) = delete;

  void enqueue(InstructionId id) override {
    const std::uint32_t lane = program_.instructions[id].lane;
    if (lane != kNoLane) lanes_[lane]->push(id);
    enqueued_.push_back(id);
    crew_.note_enqueued();
  }

  RankResult finish() override {
    crew_.await_lanes();
    crew_.begin(read_monotonic_clock());
    RankResult result;
    result.reason = crew_.await_idle();
    result.failure = crew_.run().failure(rank_);
    for (const InstructionId id : enqueued_)
      if (const std::optional<Span> span = crew_.run().span(id)) result.spans.push_back(*span);
    for (const auto& lane : lanes_) {
      if (lane == nullptr) continue;
      if (!lane->is_done()) result.stopped.push_back(crew_.run().explain(lane->head()));
      lane->clear();
    }
    enqueued_.clear();
    return result;
  }

 private:
  std::int32_t rank_;
  const Program& program_;
  LaneCrew& crew_;
  std::vector<InstructionId> enqueued_;
  std::vector<std::unique_ptr<LaneThread>> lanes_;  ///< [lane]; null for those of other ranks
};

class CpuBackend : public Backend {
 public:
  explicit CpuBackend(BackendRequest request) : request_(std::move(request)) {}

  std::unique_ptr<RankWorker> open(std::int32_t rank, const Program& program) override {
    if (!crew_ || crew_->is_closed()) crew_.emplace(request_, program);
    return std::make_unique<CpuWorker>(rank, program, *crew_);
  }

 private:
  BackendRequest request_;
  std::optional<LaneCrew> crew_;
};

const BackendRegistrar registrar{{"cpu",
                                  {"threads"},
                                  "all ranks in one process, one thread per lane",
                                  [](BackendRequest request) -> std::unique_ptr<Backend> {
                                    return std::make_unique<CpuBackend>(std::move(request));
                                  }}};

}  // namespace

}  // namespace bubblescope
