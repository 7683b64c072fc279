// The lanes of a Program as streams of GPUs, and the events around its instructions.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "exec/gpu/host/gpu_machine.h"
#include "exec/gpu/host/stream_plan.h"

namespace bubblescope {

/// Enqueues what an instruction has to do; called in the Program's order, by one thread.
using GpuWork = std::function<void(InstructionId id, void* stream)>;

class GpuLanes {
 public:
  /// `machine` and `program` are not copied. Throws Error.
  GpuLanes(const GpuMachine& machine, const Program& program);

  const StreamPlan& plan() const { return plan_; }
  std::int32_t device_of(std::uint32_t stream) const;

  /// Everything enqueued from now on starts after the begin of its device.
  void begin(const std::vector<GpuHandle>& begin_of_device);

  /// Instructions come in the Program's order.
  void enqueue(InstructionId id, const GpuWork& work);

  /// The same, but what is enqueued makes a graph, which can be launched on the first stream.
  GpuHandle capture(const std::vector<InstructionId>& ids, const GpuWork& work);
  const GpuHandle& launch_stream() const { return streams_[0]; }

  /// How much stands on the fullest stream since begin().
  std::int64_t most_pending() const;

  // Only for what was enqueued, but not captured:
  bool has_started(InstructionId id) const;
  bool has_ended(InstructionId id) const;

  /// Nanoseconds between a device's zero and the start or end of an instruction of that device.
  Nanos start_of(InstructionId id, const GpuHandle& zero) const;
  Nanos end_of(InstructionId id, const GpuHandle& zero) const;

 private:
  void create_events();
  void fork();
  void join();
  void give_up_capture();
  void put(InstructionId id, const GpuWork& work, bool in_graph);

  const GpuMachine& machine_;
  const Program& program_;
  StreamPlan plan_;
  std::vector<GpuHandle> streams_;     ///< as planned
  std::vector<GpuHandle> start_;       ///< per instruction
  std::vector<GpuHandle> end_;         ///< per instruction
  std::vector<GpuHandle> links_;       ///< per instruction, null where no stream waits for it
  std::vector<GpuHandle> joins_;       ///< per stream
  std::vector<std::int64_t> pending_;  ///< per stream
};

}  // namespace bubblescope
