// A heartbeat is a control message that says "this process is alive". A process that receives one
// starts its timeout again.
//
// While steps run, StepProtocol sends heartbeats as instructions end. The class below sends them
// from a thread of its own, for work between steps that may take longer than the timeout:
//
//   const Heartbeat heartbeat(processes);
//   train_serial_reference();
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "exec/runtime/processes.h"

namespace bubblescope::exec {

/// Sends heartbeats to all other processes, ten per second, until it is destroyed. Does nothing if
/// this process is alone.
class Heartbeat {
 public:
  /// `processes` is not copied.
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
