// The threads of one process that run a Program: one LaneThread per lane, and the pool that starts
// and ends their steps.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "exec/backend.h"
#include "exec/step_run.h"

namespace bubblescope {

class LaneCrew {
 public:
  /// `request` and `program` are not copied.
  LaneCrew(const BackendRequest& request, const Program& program,
           std::optional<Outside> outside = std::nullopt);

  StepRun& run() { return run_; }

  /// Call when an instruction was enqueued for the next step.
  void note_enqueued() { enqueued_ = true; }

  bool has_work() const { return enqueued_; }

  /// Waits until the threads of all lanes run, so that a step can begin on time.
  void await_lanes() const;

  /// Starts a step if anything was enqueued since the last one. `time` is the step's time 0 on the
  /// monotonic clock.
  void begin(Nanos time);

  /// Waits until no lane runs and returns why the step was stopped. Stops the step itself if it
  /// makes no progress for the request's timeout.
  Stop await_idle();

  /// Stops the step. The first reason is returned by await_idle().
  void stop(Stop reason);

  /// Ends the lanes' threads; call only while no lane runs.
  void close();
  bool is_closed() const { return closed_.load(std::memory_order_acquire); }

 private:
  friend class LaneThread;

  /// Adds a lane and returns the number of the last step that it missed.
  std::uint32_t join();
  /// Called by the new lane's thread once it runs.
  void arrive();
  /// Waits for the step after `last`; returns false once there will be none.
  bool await_step(std::uint32_t last);
  void leave_step();

  void open_step();

  const BackendRequest& request_;
  StepRun run_;
  std::atomic<std::uint32_t> step_ = 0;
  std::atomic<bool> closed_ = false;
  bool enqueued_ = false;
  std::atomic<Stop> reason_ = Stop::kNone;
  std::mutex mutex_;
  std::condition_variable idle_;
  int lanes_ = 0;
  std::atomic<int> arrived_ = 0;  ///< lanes whose threads run
  int busy_ = 0;
};

/// An in-order queue, and the thread that runs it step after step. Before a LaneThread is
/// destroyed, its pool must have been closed.
class LaneThread {
 public:
  explicit LaneThread(LaneCrew& crew)
      : crew_(crew), step_(crew.join()), thread_([this] { live(); }) {}
  ~LaneThread() { thread_.join(); }
  LaneThread(const LaneThread&) = delete;
  LaneThread& operator=(const LaneThread&) = delete;

  // Call only while no lane runs:
  void push(InstructionId id) { queue_.push_back(id); }
  bool is_done() const { return ended_ == queue_.size(); }
  InstructionId head() const { return queue_[ended_]; }
  void clear();

 private:
  void live();

  LaneCrew& crew_;
  std::vector<InstructionId> queue_;
  std::size_t ended_ = 0;
  std::uint32_t step_;
  std::thread thread_;
};

}  // namespace bubblescope
