// Runs the thread that sends heartbeats.
#include "exec/runtime/heartbeat.h"

#include <chrono>

#include "sim/ir/error.h"

namespace bubblescope::exec {

namespace {

/// Less than an eighth of any timeout with which a run can start.
constexpr std::chrono::milliseconds kBetween{100};

}  // namespace

Heartbeat::Heartbeat(const Processes& processes) : processes_(processes) {
  if (processes.count() > 1) thread_ = std::thread([this] { beat(); });
}

Heartbeat::~Heartbeat() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    has_ended_ = true;
  }
  ended_.notify_all();
  thread_.join();
}

/// If sending fails, the next gather reports the process that is gone.
void Heartbeat::beat() {
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, kBetween, [&] { return has_ended_; })) {
    try {
      processes_.send_heartbeat();
    } catch (const Error&) {
      return;
    }
  }
}

}  // namespace bubblescope::exec
