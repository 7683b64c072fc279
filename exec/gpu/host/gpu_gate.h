// Holds streams back until the host has enqueued everything that is to be timed.
#pragma once

#include <string>

#include "exec/gpu/host/gpu.h"

namespace bubblescope::exec {

/// A kernel that waits for the host. It ends by itself after three seconds, so that a launch that
/// waits for it can continue; its times are wrong then, and expect_held_back() says so.
class GpuGate {
 public:
  explicit GpuGate(const GpuRuntime& gpu) : gpu_(gpu), flag_(gpu.calls()) {}

  void close() { flag_.set(0); }
  void open() { flag_.set(1); }

  /// Puts the kernel on a stream.
  void hold(const GpuHandle& stream) const;

  /// Call before open(). Throws Error (Fault::kMachine) if the kernel before this event has already
  /// ended. `progress` follows "the gate ended by itself ": "when 3 of 8 ops were enqueued".
  void expect_held_back(const GpuHandle& event, const std::string& progress) const;

 private:
  const GpuRuntime& gpu_;
  GpuFlag flag_;
};

}  // namespace bubblescope::exec
