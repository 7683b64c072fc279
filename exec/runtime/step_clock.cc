// Reads the monotonic clock, and sleeps until a time.
#include "exec/runtime/step_clock.h"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <thread>

#if defined(__linux__)
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#endif

namespace bubblescope::exec {

namespace {

constexpr Nanos kSecond = 1'000'000'000;
/// A sleeping thread may wake up about this late, so it spins for the rest.
constexpr Nanos kWakeUpLatency = 60'000;
/// The longest sleep without checking whether the step was aborted.
constexpr Nanos kMaxSleep = 20'000'000;
constexpr Nanos kEager = 200'000;
constexpr Nanos kMinNap = 20'000;
constexpr Nanos kMaxNap = 100'000;

void sleep_until(Nanos absolute) {
  const timespec time{absolute / kSecond, absolute % kSecond};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr);
}

}  // namespace

Nanos read_monotonic_clock() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * kSecond + time.tv_nsec;
}

void StepClock::start(Nanos begin) {
  stopped_.store(false, std::memory_order_release);
  begin_ = begin;
}

Nanos StepClock::now() const { return read_monotonic_clock() - begin_; }

void StepClock::wait_until(Nanos time, WaitMode wait_mode) const {
  for (Nanos at = now(); at < time && !stopped(); at = now())
    if (wait_mode == WaitMode::kSleep && time - at > kWakeUpLatency)
      sleep_until(begin_ + std::min(time - kWakeUpLatency, at + kMaxSleep));
}

/// Sleeps for a small part of the time waited so far, at most kMaxNap.
void PollBackoff::wait() const {
  const Nanos waited = read_monotonic_clock() - begin_;
  if (waited < kEager)
    std::this_thread::yield();
  else
    std::this_thread::sleep_for(
        std::chrono::nanoseconds(std::clamp(waited / 64, kMinNap, kMaxNap)));
}

void enable_precise_sleep() {
#if defined(__linux__)
  prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
#endif
}

void raise_thread_priority() {
#if defined(__linux__)
  sched_param priority{};
  priority.sched_priority = 1;
  pthread_setschedparam(pthread_self(), SCHED_FIFO, &priority);
#endif
}

}  // namespace bubblescope::exec
