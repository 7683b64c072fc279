// While one process works for all of them, the others must not take it for dead.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "exec/runtime/processes.h"

namespace bubblescope::exec {

/// Heartbeats for the other processes, as long as it lives. Does nothing where there are none.
class Heartbeat {
 public:
  /// The processes are not copied.
  explicit Heartbeat(const Processes& processes);
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

 private:
  void beat();

  const Processes& processes_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool has_ended_ = false;
  std::thread thread_;
};

}  // namespace bubblescope::exec
