// The lanes of a Program as GPU streams, with an event before and after every instruction.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "exec/gpu/host/gpu_machine.h"
#include "exec/gpu/host/stream_plan.h"

namespace bubblescope::exec {

/// Enqueues the work of an instruction on its stream. Called by one thread, in the Program's order.
using GpuWork = std::function<void(InstructionId id, void* stream)>;

class GpuLanes {
 public:
  /// `machine` and `program` are not copied. Throws Error.
  GpuLanes(const GpuMachine& machine, const Program& program);

  const StreamPlan& plan() const { return plan_; }
  std::int32_t device_of(std::uint32_t stream) const;

  std::size_t count_streams(std::int32_t device) const;

  /// Makes all streams wait for the start event of their device.
  void begin(const std::vector<GpuHandle>& begin_of_device);

  /// Enqueues all that comes before an instruction's work: the waits for its dependencies, and its
  /// start event. If nothing runs before all is enqueued, an instruction that waits for nothing but
  /// the one before it needs no such event: it starts when that one ends. Returns the stream for
  /// the work. Call in the Program's order.
  void* start(InstructionId id, bool is_held_back) { return start(id, is_held_back, false); }
  /// Enqueues the end event after the work.
  void end(InstructionId id) { end(id, false); }

  /// Captures the instructions in a graph, which can be launched on the first stream.
  GpuHandle capture(const std::vector<InstructionId>& ids, const GpuWork& work);
  const GpuHandle& launch_stream() const { return streams_[0]; }

  /// The number of commands enqueued since begin() on the stream that has most.
  std::int64_t max_pending() const;

  // These are valid for enqueued instructions, not for captured ones:
  bool has_started(InstructionId id) const;
  bool has_ended(InstructionId id) const;

  /// Return the nanoseconds from a device's zero event to the start or the end of one of its
  /// instructions.
  Nanos start_of(InstructionId id, const GpuHandle& zero) const;
  Nanos end_of(InstructionId id, const GpuHandle& zero) const;

 private:
  void create_events();
  const GpuHandle& start_event(InstructionId id) const {
    return starts_at_end_[id] ? end_[*before_[id]] : start_[id];
  }
  void fork();
  void join();
  void abandon_capture();
  void* start(InstructionId id, bool is_held_back, bool in_graph);
  void end(InstructionId id, bool in_graph);

  const GpuMachine& machine_;
  const Program& program_;
  StreamPlan plan_;
  std::vector<GpuHandle> streams_;  ///< in the order of the plan
  std::vector<GpuHandle> start_;    ///< per instruction
  /// Per instruction: the one before it on its stream, if it waits for nothing else.
  std::vector<std::optional<InstructionId>> before_;
  std::vector<bool> starts_at_end_;    ///< per instruction: of the one before it, in this step
  std::vector<GpuHandle> end_;         ///< per instruction
  std::vector<GpuHandle> links_;       ///< per instruction; null if no stream waits for it
  std::vector<GpuHandle> joins_;       ///< per stream
  std::vector<std::int64_t> pending_;  ///< per stream
  std::int64_t commands_before_ = 0;   ///< gpu.commands() when the last instruction started
};

}  // namespace bubblescope::exec
