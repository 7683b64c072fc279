// Puts instructions on streams.
#include "exec/gpu/host/gpu_lanes.h"

#include <algorithm>
#include <optional>

#include "exec/gpu/host/gpu_label.h"
#include "sim/ir/error.h"

namespace bubblescope::exec {

GpuLanes::GpuLanes(const GpuMachine& machine, const Program& program)
    : machine_(machine),
      program_(program),
      plan_(plan_streams(program)),
      pending_(plan_.streams.size(), 0) {
  const GpuRuntime& gpu = machine.gpu();
  for (const PlannedStream& stream : plan_.streams) {
    const std::int32_t device = machine.place(stream.rank).device;
    streams_.push_back(
        gpu.create_stream(device, stream.computes ? machine.partition(stream.rank) : nullptr));
    joins_.push_back(gpu.create_event(device, EventUse::kOrderOnly));
  }
  create_events();
}

void GpuLanes::create_events() {
  const GpuRuntime& gpu = machine_.gpu();
  std::vector<bool> awaited(program_.size(), false);
  for (const InstructionId id : plan_.waits) awaited[id] = true;
  before_.resize(program_.size());
  starts_at_end_.resize(program_.size());
  std::vector<std::optional<InstructionId>> last(streams_.size());
  for (const InstructionId id : plan_.order) {
    std::optional<InstructionId>& before = last[plan_.stream_of[id]];
    if (plan_.waits_of(id).empty()) before_[id] = before;
    before = id;
  }
  for (InstructionId id = 0; id < program_.size(); ++id) {
    const std::int32_t device = device_of(plan_.stream_of[id]);
    start_.push_back(gpu.create_event(device, EventUse::kTimed));
    end_.push_back(gpu.create_event(device, EventUse::kTimed));
    links_.push_back(awaited[id] ? gpu.create_event(device, EventUse::kOrderOnly) : GpuHandle());
  }
}

std::int32_t GpuLanes::device_of(std::uint32_t stream) const {
  return machine_.place(plan_.streams[stream].rank).device;
}

std::size_t GpuLanes::count_streams(std::int32_t device) const {
  std::size_t count = 0;
  for (std::uint32_t stream = 0; stream < streams_.size(); ++stream)
    if (device_of(stream) == device) ++count;
  return count;
}

void GpuLanes::begin(const std::vector<GpuHandle>& begin_of_device) {
  for (std::uint32_t stream = 0; stream < streams_.size(); ++stream) {
    machine_.gpu().wait(streams_[stream],
                        begin_of_device[static_cast<std::size_t>(device_of(stream))]);
    pending_[stream] = 1;
  }
}

/// During a capture, dependencies need events of their own, which become edges of the graph; timed
/// events do not.
void* GpuLanes::start(InstructionId id, bool is_held_back, bool in_graph) {
  const GpuRuntime& gpu = machine_.gpu();
  const GpuHandle& stream = streams_[plan_.stream_of[id]];
  commands_before_ = gpu.commands();
  for (const InstructionId awaited : plan_.waits_of(id))
    gpu.wait(stream, in_graph ? links_[awaited] : end_[awaited]);
  starts_at_end_[id] = is_held_back && before_[id];
  if (starts_at_end_[id]) return stream.get();
  if (in_graph)
    gpu.record_in_graph(start_[id], stream);
  else
    gpu.record(start_[id], stream);
  return stream.get();
}

void GpuLanes::end(InstructionId id, bool in_graph) {
  const GpuRuntime& gpu = machine_.gpu();
  const std::uint32_t at = plan_.stream_of[id];
  const GpuHandle& stream = streams_[at];
  if (in_graph)
    gpu.record_in_graph(end_[id], stream);
  else
    gpu.record(end_[id], stream);
  if (in_graph && links_[id]) gpu.record(links_[id], stream);
  pending_[at] += gpu.commands() - commands_before_;
}

GpuHandle GpuLanes::capture(const std::vector<InstructionId>& ids, const GpuWork& work) {
  machine_.gpu().begin_capture(launch_stream());
  try {
    fork();
    for (const InstructionId id : ids) {
      void* const stream = start(id, true, true);
      {
        const GpuLabel label(machine_.gpu(), to_string(program_.instructions[id].op).c_str());
        work(id, stream);
      }
      end(id, true);
    }
    join();
  } catch (...) {
    abandon_capture();
    throw;
  }
  return machine_.gpu().end_capture(launch_stream());
}

/// A stream cannot be destroyed while it is captured. The error of the incomplete capture is
/// ignored: its cause is already being thrown.
void GpuLanes::abandon_capture() {
  try {
    machine_.gpu().end_capture(launch_stream());
  } catch (const Error&) {
  }
}

void GpuLanes::fork() {
  const GpuRuntime& gpu = machine_.gpu();
  gpu.record(joins_[0], launch_stream());
  for (std::size_t stream = 1; stream < streams_.size(); ++stream)
    gpu.wait(streams_[stream], joins_[0]);
}

void GpuLanes::join() {
  const GpuRuntime& gpu = machine_.gpu();
  for (std::size_t stream = 1; stream < streams_.size(); ++stream) {
    gpu.record(joins_[stream], streams_[stream]);
    gpu.wait(launch_stream(), joins_[stream]);
  }
}

std::int64_t GpuLanes::max_pending() const {
  return *std::max_element(pending_.begin(), pending_.end());
}

bool GpuLanes::has_started(InstructionId id) const {
  return machine_.gpu().has_ended(start_event(id));
}

bool GpuLanes::has_ended(InstructionId id) const { return machine_.gpu().has_ended(end_[id]); }

Nanos GpuLanes::start_of(InstructionId id, const GpuHandle& zero) const {
  return machine_.gpu().elapsed(zero, start_event(id));
}

Nanos GpuLanes::end_of(InstructionId id, const GpuHandle& zero) const {
  return machine_.gpu().elapsed(zero, end_[id]);
}

}  // namespace bubblescope::exec
