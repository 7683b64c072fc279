// Runs steps on the threads of a pool.
#include "exec/runtime/worker_pool.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

namespace bubblescope::exec {

namespace {

/// How often the waiting main thread checks for a timeout or an interrupt.
constexpr std::chrono::microseconds kAbortPollInterval{20'000};
/// The interval if the thread also receives messages, while all lanes are busy.
constexpr std::chrono::microseconds kMessagePollInterval{500};

}  // namespace

/// A lane's instructions and the thread that runs them. The pool must be closed before this is
/// destroyed.
class WorkerPool::LaneThread {
 public:
  LaneThread(WorkerPool& pool, std::uint32_t lane, std::vector<InstructionId> queue)
      : pool_(pool), lane_(lane), queue_(std::move(queue)), thread_([this] { run_steps(); }) {}
  ~LaneThread() { thread_.join(); }
  LaneThread(const LaneThread&) = delete;
  LaneThread& operator=(const LaneThread&) = delete;

  // Call these only while no lane runs.
  void rewind() {
    std::sort(queue_.begin(), queue_.end());
    ended_ = chosen_ = 0;
  }
  /// The first instruction that has not ended; empty if all have.
  std::optional<InstructionId> head() const {
    return ended_ == queue_.size() ? std::nullopt : std::optional(queue_[ended_]);
  }

 private:
  void run_steps() {
    enable_precise_sleep();
    if (pool_.request_.high_priority) raise_thread_priority();
    pool_.arrive();
    for (std::uint32_t step = 0; pool_.await_step(step); ++step) {
      while (ended_ < queue_.size() && choose_next() && pool_.run_.run(queue_[ended_])) ++ended_;
      pool_.leave_step();
    }
  }

  /// Where the order is a hint, moves what runs next to the front of what is left.
  bool choose_next() {
    if (!pool_.run_.chooses(lane_) || ended_ < chosen_) return true;
    const std::optional<ReadyUnit> unit = pool_.run_.choose(lane_);
    if (!unit) return false;
    bring_forward(unit->first);
    if (unit->last != unit->first) bring_forward(unit->last);
    return true;
  }

  void bring_forward(InstructionId id) {
    const auto next = queue_.begin() + static_cast<std::ptrdiff_t>(chosen_++);
    const auto place = std::find(next, queue_.end(), id);
    std::rotate(next, place, place + 1);
  }

  WorkerPool& pool_;
  std::uint32_t lane_;
  std::vector<InstructionId> queue_;  ///< what has run, and then the rest in its order
  std::size_t ended_ = 0;
  std::size_t chosen_ = 0;
  std::thread thread_;
};

WorkerPool::WorkerPool(const BackendRequest& request, const Program& program,
                       std::optional<RemoteHooks> remote)
    : request_(request), program_(program), run_(request, program, remote) {
  std::vector<std::vector<InstructionId>> queues(program.lanes.size());
  for (InstructionId id = 0; id < program.size(); ++id)
    if (const std::uint32_t lane = program.instructions[id].lane; lane != kNoLane)
      queues[lane].push_back(id);
  lanes_.resize(queues.size());
  for (std::size_t lane = 0; lane < queues.size(); ++lane) {
    if (remote && program.lanes[lane].rank != remote->here) continue;
    lanes_[lane] = std::make_unique<LaneThread>(*this, static_cast<std::uint32_t>(lane),
                                                std::move(queues[lane]));
    ++lane_count_;
  }
}

WorkerPool::~WorkerPool() {
  closed_.store(true, std::memory_order_release);
  open_step();
  lanes_.clear();
}

void WorkerPool::await_threads() const {
  for (int arrived = arrived_; arrived < lane_count_; arrived = arrived_) arrived_.wait(arrived);
}

AbortReason WorkerPool::run_step(Nanos begin) {
  for (const auto& lane : lanes_)
    if (lane != nullptr) lane->rewind();
  reason_ = AbortReason::kNone;
  busy_ = lane_count_;
  run_.start(begin);
  open_step();
  return await_idle();
}

void WorkerPool::skip_step() {
  for (const auto& lane : lanes_)
    if (lane != nullptr) lane->rewind();
  run_.reset();
}

AbortReason WorkerPool::await_idle() {
  using Clock = std::chrono::steady_clock;
  std::unique_lock lock(mutex_);
  std::uint64_t seen = run_.progress();
  Clock::time_point seen_at = Clock::now();
  const auto interval = run_.has_remote() ? kMessagePollInterval : kAbortPollInterval;
  while (!idle_.wait_for(lock, interval, [&] { return busy_ == 0; })) {
    if (run_.has_remote()) {
      lock.unlock();
      run_.poll();
      lock.lock();
    }
    if (std::exchange(seen, run_.progress()) != seen) seen_at = Clock::now();
    if (run_.aborted()) continue;
    if (request_.limits.is_interrupted())
      abort(AbortReason::kInterrupt);
    else if (Clock::now() - seen_at > std::chrono::nanoseconds(request_.limits.timeout))
      abort(AbortReason::kTimeout);
  }
  AbortReason none = AbortReason::kNone;
  if (run_.aborted()) reason_.compare_exchange_strong(none, AbortReason::kFailure);
  return reason_;
}

void WorkerPool::arrive() {
  arrived_.fetch_add(1);
  arrived_.notify_all();
}

bool WorkerPool::await_step(std::uint32_t last) {
  step_.wait(last, std::memory_order_acquire);
  return !closed_.load(std::memory_order_acquire);
}

void WorkerPool::leave_step() {
  const std::lock_guard lock(mutex_);
  if (--busy_ == 0) idle_.notify_all();
}

void WorkerPool::open_step() {
  step_.fetch_add(1, std::memory_order_release);
  step_.notify_all();
}

void WorkerPool::abort(AbortReason reason) {
  AbortReason none = AbortReason::kNone;
  reason_.compare_exchange_strong(none, reason);
  run_.abort();
}

RankResult WorkerPool::result(std::int32_t rank) const {
  RankResult result;
  result.reason = reason_;
  result.failure = run_.failure(rank);
  for (InstructionId id = 0; id < program_.size(); ++id)
    if (program_.instructions[id].rank == rank)
      if (const std::optional<Span> span = run_.span(id)) result.spans.push_back(*span);
  for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
    if (lanes_[lane] == nullptr || program_.lanes[lane].rank != rank) continue;
    if (const auto head = lanes_[lane]->head()) result.blocked.push_back(run_.explain(*head));
  }
  return result;
}

}  // namespace bubblescope::exec
