// The threads of one process that run a Program: one per lane, which works its instructions off in
// their order, step after step.
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
  /// Starts a thread for every lane of the ranks that run here: all of them, or with `remote` one.
  /// `request` and `program` are not copied.
  WorkerPool(const BackendRequest& request, const Program& program,
             std::optional<RemoteHooks> remote = std::nullopt);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  StepRun& run() { return run_; }

  /// Returns when the thread of every lane runs: before, a step could not begin on time.
  void await_threads() const;

  /// Runs a step whose time 0 is this one of the monotonic clock, and returns why it was stopped. A
  /// step that makes no progress for the request's timeout is.
  AbortReason run_step(Nanos begin);

  /// The next results are those of a step that did not begin.
  void skip_step();

  /// Stops the step, and lets run_step() return this reason, if it is the first.
  void stop(AbortReason reason);

  /// What a rank that runs here did in the last step.
  RankResult result(std::int32_t rank) const;

 private:
  class LaneThread;

  void open_step();
  /// A lane's thread runs.
  void arrive();
  /// Waits for the step after the given one. False when there will be none.
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
  std::atomic<int> arrived_ = 0;  ///< lanes whose threads run
  int busy_ = 0;
  std::vector<std::unique_ptr<LaneThread>> lanes_;  ///< [lane]; null for those of other processes
  int lane_count_ = 0;                              ///< of those that are here
};

}  // namespace bubblescope::exec
