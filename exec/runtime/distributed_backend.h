// The backend of one process per rank: the lanes of this process's rank, and their dealings with
// the other processes.
#pragma once

#include <mutex>
#include <vector>

#include "exec/runtime/rank_part.h"
#include "exec/runtime/remote_copies.h"
#include "exec/runtime/step_protocol.h"
#include "exec/runtime/transport.h"
#include "exec/runtime/worker_pool.h"

namespace bubblescope::exec {

class DistributedBackend : public Backend {
 public:
  /// Nothing is copied but the request. There must be one process per rank.
  DistributedBackend(BackendRequest request, const Program& program, Transport& transport);
  DistributedBackend(const DistributedBackend&) = delete;
  DistributedBackend& operator=(const DistributedBackend&) = delete;

  std::vector<RankResult> run_step() override;

 private:
  RemoteHooks make_outside();
  RankPart run_lanes();
  void notify(InstructionId id, Nanos end);
  void move(InstructionId copy);
  bool poll();
  void handle(const Message& message);

  BackendRequest request_;
  const Program& program_;
  Transport& transport_;
  std::int32_t here_;
  std::vector<std::vector<std::int32_t>> receivers_;  ///< per instruction of this rank
  RemoteCopies copies_;
  StepProtocol protocol_;
  std::mutex mutex_;  ///< guards the arrivals
  std::vector<Span> arrivals_;
  WorkerPool pool_;
};

}  // namespace bubblescope::exec
