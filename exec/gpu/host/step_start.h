// The common start of a step on all devices: a gate that holds each device back until the step is
// enqueued, and after it the zero event from which the device's times count.
#pragma once

#include <vector>

#include "exec/gpu/host/gpu_gate.h"
#include "exec/gpu/host/gpu_machine.h"

namespace bubblescope::exec {

/// Bounds for the moment when a device passed the zero event of a step, on the host's monotonic
/// clock.
struct ZeroTime {
  Nanos earliest = 0;
  Nanos latest = 0;
};

class StepStart {
 public:
  explicit StepStart(const GpuMachine& machine);

  /// Begins a new step, which is not held back yet.
  void reset();

  /// Enqueues the gate and the zero event of every device.
  void hold_back();

  bool is_open() const { return is_open_; }
  /// Opens the gates; `progress` says how far the host was, see GpuGate. Throws Error if a gate
  /// ended before: the step then began before it was enqueued, and its times are wrong.
  void open(const std::string& progress);
  /// Opens the gates of a step that is aborted.
  void abandon() { gate_.open(); }

  /// Polls until the first device has passed its zero event, for some milliseconds at most.
  void await_zero();

  const std::vector<GpuHandle>& zero_events() const { return zero_; }  ///< [device]
  const ZeroTime& zero_time() const { return zero_time_; }             ///< of the first device

 private:
  const GpuRuntime& gpu_;
  GpuGate gate_;
  std::vector<GpuHandle> streams_;  ///< [device]: of the gates
  std::vector<GpuHandle> zero_;     ///< [device]
  ZeroTime zero_time_;
  bool is_open_ = false;
  bool is_held_ = false;  ///< all gates are enqueued, and were not open then
};

}  // namespace bubblescope::exec
