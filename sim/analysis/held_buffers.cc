// Finds the instructions at which buffers begin and end.
#include "sim/analysis/held_buffers.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <utility>

#include "sim/analysis/memory_sum.h"
#include "sim/ir/depend.h"

namespace bubblescope::inline sim {

namespace {

Bytes bytes_of(const Op& send, const MemoryModel& memory) {
  if (memory.output_bytes.empty()) return 0;
  const MessageSizes& sizes = memory.output_bytes(send);
  return carries_activation(send.kind) ? sizes.forward : sizes.backward;
}

/// The op whose result a message carries: the last one of its rank that it waits for.
InstructionId find_producer(const Program& program, const Timeline& timeline,
                            InstructionId message) {
  InstructionId producer = message;
  for (const InstructionId awaited : program.dependencies_of(message)) {
    const Instruction& candidate = program.instructions[awaited];
    if (!is_compute(candidate.op.kind) || candidate.rank != program.instructions[message].rank)
      continue;
    if (producer == message || timeline.end[awaited] > timeline.end[producer]) producer = awaited;
  }
  return producer;
}

void add_outputs(std::vector<BufferChange>& changes, const Program& program,
                 const Timeline& timeline, const MemoryModel& memory) {
  for (InstructionId id = 0; id < program.size(); ++id) {
    const Instruction& instruction = program.instructions[id];
    const Bytes bytes = is_message(instruction) || is_send_wait(instruction.op.kind)
                            ? bytes_of(instruction.op, memory)
                            : 0;
    if (is_message(instruction)) {
      const InstructionId producer = find_producer(program, timeline, id);
      const Nanos made = producer == id ? timeline.start[id] : timeline.end[producer];
      changes.push_back({made, instruction.rank, HeldBuffer::kOutput, true, bytes, producer});
    } else if (is_send_wait(instruction.op.kind) && instruction.lane == kNoLane) {
      changes.push_back(
          {timeline.end[id], instruction.rank, HeldBuffer::kOutput, false, bytes, id});
    }
  }
}

void add_gathered(std::vector<BufferChange>& changes, const Program& program,
                  const Timeline& timeline, const MemoryModel& memory) {
  for (InstructionId id = 0; id < program.size(); ++id) {
    const Instruction& instruction = program.instructions[id];
    const OpKind kind = instruction.op.kind;
    if (kind != OpKind::kUnshard && kind != OpKind::kReshard) continue;
    const bool allocates = kind == OpKind::kUnshard;
    const auto stage = static_cast<std::size_t>(instruction.op.stage);
    const Bytes bytes = memory.gathered_bytes.empty() ? 0 : memory.gathered_bytes[stage];
    changes.push_back({allocates ? timeline.start[id] : timeline.end[id], instruction.rank,
                       HeldBuffer::kGathered, allocates, bytes, id});
  }
}

/// The buffers of one kind that a rank holds.
struct Held {
  std::int64_t count = 0;
  Bytes bytes = 0;
};

BufferPeak& peak_of(Peak& peak, HeldBuffer buffer) {
  return buffer == HeldBuffer::kOutput ? *peak.outputs : *peak.gathered;
}

}  // namespace

ChangeOrder order_of(const BufferChange& change) {
  if (!change.allocates) return ChangeOrder::kCopyReleases;
  return change.buffer == HeldBuffer::kOutput ? ChangeOrder::kOutput : ChangeOrder::kCopyAllocates;
}

std::vector<BufferChange> find_buffer_changes(const Program& program, const Timeline& timeline,
                                              const MemoryModel& memory) {
  std::vector<BufferChange> changes;
  if (memory.counts_outputs) add_outputs(changes, program, timeline, memory);
  if (memory.counts_gathered) add_gathered(changes, program, timeline, memory);
  std::stable_sort(
      changes.begin(), changes.end(), [](const BufferChange& left, const BufferChange& right) {
        return std::pair(left.time, order_of(left)) < std::pair(right.time, order_of(right));
      });
  return changes;
}

void set_buffer_peaks(std::vector<Peak>& peaks, const std::vector<BufferChange>& changes,
                      const MemoryModel& memory) {
  const auto known = [](bool is_known) {
    return is_known ? std::optional<Bytes>(0) : std::nullopt;
  };
  for (Peak& peak : peaks) {
    if (memory.counts_outputs) peak.outputs = BufferPeak{0, known(!memory.output_bytes.empty())};
    if (memory.counts_gathered)
      peak.gathered = BufferPeak{0, known(!memory.gathered_bytes.empty())};
  }
  std::vector<std::array<Held, 2>> held(peaks.size());
  for (const BufferChange& change : changes) {
    const auto rank = static_cast<std::size_t>(change.rank);
    Held& now = held[rank][static_cast<std::size_t>(change.buffer)];
    now.count += change.allocates ? 1 : -1;
    now.bytes = add_memory(now.bytes, change.allocates ? change.bytes : -change.bytes);
    BufferPeak& peak = peak_of(peaks[rank], change.buffer);
    peak.count = std::max(peak.count, now.count);
    if (peak.bytes) peak.bytes = std::max(*peak.bytes, expect_countable(now.bytes));
  }
}

}  // namespace bubblescope::inline sim
