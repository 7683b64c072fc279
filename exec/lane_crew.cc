// Steps of a crew of threads.
#include "exec/lane_crew.h"

#include <chrono>
#include <utility>

namespace bubblescope {

namespace {

/// How often the waiting main thread looks whether it is to stop.
constexpr std::chrono::microseconds kLook{20'000};
/// The same where it also takes in messages while all lanes are at work.
constexpr std::chrono::microseconds kListen{500};

}  // namespace

/// Not inline: there g++ 12 warns of what an empty optional has not got.
LaneCrew::LaneCrew(const BackendRequest& request, const Program& program,
                   std::optional<Outside> outside)
    : request_(request), run_(request, program, std::move(outside)) {}

void LaneCrew::await_lanes() const {
  for (int arrived = arrived_; arrived < lanes_; arrived = arrived_) arrived_.wait(arrived);
}

void LaneCrew::begin(Nanos time) {
  if (!std::exchange(enqueued_, false)) return;
  reason_ = Stop::kNone;
  busy_ = lanes_;
  run_.start(time);
  open_step();
}

Stop LaneCrew::await_idle() {
  using Clock = std::chrono::steady_clock;
  std::unique_lock lock(mutex_);
  std::uint64_t seen = run_.progress();
  Clock::time_point seen_at = Clock::now();
  const auto look = run_.listens() ? kListen : kLook;
  while (!idle_.wait_for(lock, look, [&] { return busy_ == 0; })) {
    if (run_.listens()) {
      lock.unlock();
      run_.listen();
      lock.lock();
    }
    if (std::exchange(seen, run_.progress()) != seen) seen_at = Clock::now();
    if (run_.stopped()) continue;
    const bool interrupted = request_.interrupted != nullptr && request_.interrupted->load();
    if (interrupted)
      stop(Stop::kInterrupt);
    else if (Clock::now() - seen_at > std::chrono::nanoseconds(request_.timeout))
      stop(Stop::kTimeout);
  }
  Stop none = Stop::kNone;
  if (run_.stopped()) reason_.compare_exchange_strong(none, Stop::kFailure);
  return reason_;
}

void LaneCrew::close() {
  closed_.store(true, std::memory_order_release);
  open_step();
}

std::uint32_t LaneCrew::join() {
  ++lanes_;
  return step_.load(std::memory_order_acquire);
}

void LaneCrew::arrive() {
  arrived_.fetch_add(1);
  arrived_.notify_all();
}

bool LaneCrew::await_step(std::uint32_t last) {
  step_.wait(last, std::memory_order_acquire);
  return !is_closed();
}

void LaneCrew::leave_step() {
  const std::lock_guard lock(mutex_);
  if (--busy_ == 0) idle_.notify_all();
}

void LaneCrew::open_step() {
  step_.fetch_add(1, std::memory_order_release);
  step_.notify_all();
}

void LaneCrew::stop(Stop reason) {
  Stop none = Stop::kNone;
  reason_.compare_exchange_strong(none, reason);
  run_.stop();
}

void LaneThread::clear() {
  queue_.clear();
  ended_ = 0;
}

void LaneThread::live() {
  sharpen_sleep();
  if (crew_.request_.punctual) go_first();
  crew_.arrive();
  for (std::uint32_t step = step_; crew_.await_step(step); ++step) {
    while (ended_ < queue_.size() && crew_.run().run(queue_[ended_])) ++ended_;
    crew_.leave_step();
  }
}

}  // namespace bubblescope
