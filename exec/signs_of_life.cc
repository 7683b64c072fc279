// A thread that tells the others, again and again.
#include "exec/signs_of_life.h"

#include <chrono>

#include "sim/ir/error.h"

namespace bubblescope {

namespace {

/// Less than an eighth of the shortest --timeout that leaves time to start.
constexpr std::chrono::milliseconds kBetween{100};

}  // namespace

SignsOfLife::SignsOfLife(const Processes& processes) : processes_(processes) {
  if (processes.count() > 1) thread_ = std::thread([this] { show(); });
}

SignsOfLife::~SignsOfLife() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    has_ended_ = true;
  }
  ended_.notify_all();
  thread_.join();
}

/// Who cannot be told will be missed when it is next needed, and named then.
void SignsOfLife::show() {
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, kBetween, [&] { return has_ended_; })) {
    try {
      processes_.show_life();
    } catch (const Error&) {
      return;
    }
  }
}

}  // namespace bubblescope
