// A worker pool has one thread per lane of the ranks that run in this process. In every step, each
// thread runs the instructions of its lane in order. The thread that calls run_step() waits for
// them and watches for a timeout, Ctrl-C and messages of other processes.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "exec/runtime/backend.h"
#include "exec/runtime/step_run.h"

namespace bubblescope::exec {

class WorkerPool {
 public:
  /// Starts a thread for every lane: of all ranks, or with `remote` only of the rank that it names.
  /// `request` and `program` are not copied.
  WorkerPool(const BackendRequest& request, const Program& program,
             std::optional<RemoteHooks> remote = std::nullopt);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  StepRun& run() { return run_; }

  /// Returns when the threads of all lanes run. Before that, a step could not begin on time.
  void await_threads() const;

  /// Runs a step that begins at this time of the monotonic clock, and returns why it was aborted
  /// (kNone: it was not). A step without progress for the request's timeout is aborted.
  AbortReason run_step(Nanos begin);

  /// Makes result() describe a step that did not begin.
  void skip_step();

  /// Aborts the step. run_step() returns the reason of the first call.
  void abort(AbortReason reason);

  /// Returns the result of a rank of this process in the last step.
  RankResult result(std::int32_t rank) const;

 private:
  class LaneThread;

  void open_step();
  /// Counts a lane's thread that has started.
  void arrive();
  /// Waits for the step after the given one. Returns false if the pool is closed instead.
  bool await_step(std::uint32_t last);
  void leave_step();
  AbortReason await_idle();

  const BackendRequest& request_;
  const Program& program_;
  StepRun run_;
  std::atomic<std::uint32_t> step_ = 0;
  std::atomic<bool> closed_ = false;
  std::atomic<AbortReason> reason_ = AbortReason::kNone;
  std::mutex mutex_;
  std::condition_variable idle_;
  std::atomic<int> arrived_ = 0;  ///< lanes whose threads have started
  int busy_ = 0;
  std::vector<std::unique_ptr<LaneThread>> lanes_;  ///< [lane]; null for lanes of other processes
  int lane_count_ = 0;                              ///< lanes of this process
};

}  // namespace bubblescope::exec
