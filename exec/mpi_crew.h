// The backend of one process per rank: the lanes of this process's rank, and their dealings with
// the other processes.
#pragma once

#include <mutex>
#include <vector>

#include "exec/mpi_copies.h"
#include "exec/mpi_port.h"
#include "exec/rank_part.h"
#include "exec/worker_pool.h"

namespace bubblescope {

/// A sign of life of this process, for Channel::kControl.
Blob sign_of_life();

class MpiCrew : public Backend {
 public:
  /// Nothing is copied but the request. There must be one process per rank.
  MpiCrew(BackendRequest request, const Program& program, MpiPort& port);
  MpiCrew(const MpiCrew&) = delete;
  MpiCrew& operator=(const MpiCrew&) = delete;

  std::vector<RankResult> run_step() override;

 private:
  Outside make_outside();
  std::vector<RankPart> call_roll(std::vector<RankPart> parts);
  RankPart run_lanes();
  void tell(InstructionId id, Nanos end);
  void move(InstructionId copy);
  bool listen();
  void take(const Letter& letter);
  void heed(const Letter& letter);
  void show_life();
  bool gives_up(Nanos least = 0);
  bool is_interrupted() const;

  BackendRequest request_;
  const Program& program_;
  MpiPort& port_;
  std::int32_t here_;
  std::vector<std::vector<std::int32_t>> receivers_;  ///< per instruction of this rank
  MpiCopies copies_;
  WorkerPool pool_;
  std::uint32_t step_ = 0;

  std::mutex mutex_;  ///< guards what follows
  std::vector<Span> arrivals_;
  std::uint64_t heard_ = 0;  ///< signs of life of others
  std::uint64_t shown_ = 0;  ///< our progress when we last gave one
  Nanos shown_at_ = 0;
  Nanos news_at_ = 0;                 ///< when we last heard anything, while we only wait
  std::optional<Nanos> deadline_;     ///< when we stop waiting for answers, once there is a stop
  Stop heard_stop_ = Stop::kTimeout;  ///< why another process stopped, before a step began
};

}  // namespace bubblescope
