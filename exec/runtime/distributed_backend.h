// The backend for one process per rank, over any Transport. A WorkerPool runs the lanes of this
// process's rank; a StepProtocol agrees with the other processes on the beginning and the end of
// the step.
//
// When an instruction ends for which another rank waits, this process sends it the instruction's
// id, its end and its payload:
//
//   rank 0:  0F0 ends  ->  message (step 1, 0F0, 12,000 ns, activations)  ->  rank 1: 1F0 may start
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
  /// Only the request is copied. There must be one process per rank.
  DistributedBackend(BackendRequest request, const Program& program, Transport& transport);
  DistributedBackend(const DistributedBackend&) = delete;
  DistributedBackend& operator=(const DistributedBackend&) = delete;

  std::vector<RankResult> run_step() override;

 private:
  RemoteHooks make_remote_hooks();
  RankPart run_lanes();
  void notify(InstructionId id, Nanos end);
  void copy_remote(InstructionId copy);
  bool poll();
  void handle(const Message& message);

  BackendRequest request_;
  const Program& program_;
  Transport& transport_;
  std::int32_t here_;
  std::vector<std::vector<std::int32_t>>
      receivers_;  ///< [instruction]: the other ranks that wait for it
  RemoteCopies copies_;
  StepProtocol protocol_;
  std::mutex mutex_;  ///< guards arrivals_
  std::vector<Span> arrivals_;
  WorkerPool pool_;
};

}  // namespace bubblescope::exec
