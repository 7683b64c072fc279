// The threads of one process that run a Program: a LaneThread per lane, and the LaneCrew to which
// they belong, which begins and ends their steps.
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

  /// What the next step has to do has changed.
  void note_enqueued() { enqueued_ = true; }

  bool has_work() const { return enqueued_; }

  /// Returns when the thread of every lane runs: before, a step could not begin on time.
  void await_lanes() const;

  /// Lets the lanes work off what was enqueued since the last step, if anything was. Time 0 of the
  /// step is this one of the monotonic clock.
  void begin(Nanos time);

  /// Returns when no lane runs, and why the step was stopped. A step that makes no progress for
  /// the request's timeout is.
  Stop await_idle();

  /// Stops the step, and lets await_idle() tell this reason, if it is the first.
  void stop(Stop reason);

  /// Ends the lanes' threads. Only while no lane runs.
  void close();
  bool is_closed() const { return closed_.load(std::memory_order_acquire); }

 private:
  friend class LaneThread;

  /// A new lane; returns the number of the last step that it missed.
  std::uint32_t join();
  /// The new lane's thread runs.
  void arrive();
  /// Waits for the step after the given one. False when there will be none.
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

/// An in-order queue and the thread that works it off, step after step. The crew must have been
/// closed when a LaneThread goes.
class LaneThread {
 public:
  explicit LaneThread(LaneCrew& crew)
      : crew_(crew), step_(crew.join()), thread_([this] { live(); }) {}
  ~LaneThread() { thread_.join(); }
  LaneThread(const LaneThread&) = delete;
  LaneThread& operator=(const LaneThread&) = delete;

  // Only while no lane runs:
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
