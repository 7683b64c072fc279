// Finds the consumers of messages, and memory over time.
#include "traces/timelines/step_details.h"

#include <algorithm>
#include <cstddef>

namespace bubblescope::traces {

std::vector<InstructionId> find_consumers(const Program& program) {
  std::vector<InstructionId> consumers(program.size(), kNoInstruction);
  for (InstructionId id = 0; id < program.size(); ++id)
    for (const InstructionId dependency : program.dependencies_of(id)) {
      const Instruction& sent = program.instructions[dependency];
      const Instruction& user = program.instructions[id];
      if (is_message(sent) && user.role == Role::kWork && user.rank == sent.peer)
        consumers[dependency] = id;
    }
  return consumers;
}

std::vector<MemoryPoint> find_memory_changes(const StepRecord& record) {
  std::vector<MemoryAmount> before(static_cast<std::size_t>(record.program.ranks));
  std::vector<MemoryPoint> changes;
  for (const MemoryPoint& point : compute_memory_curve(record.schedule, record.program,
                                                       record.timeline, record.report.memory)) {
    MemoryAmount& now = before[static_cast<std::size_t>(point.rank)];
    const bool changes_nothing =
        point.held.chunk_millionths == now.chunk_millionths && point.held.bytes == now.bytes;
    if (changes_nothing) continue;
    now = point.held;
    changes.push_back(point);
  }
  std::stable_sort(
      changes.begin(), changes.end(),
      [](const MemoryPoint& left, const MemoryPoint& right) { return left.time < right.time; });
  return changes;
}

double chunks_of(const MemoryAmount& held, const Shape& shape) {
  return static_cast<double>(held.chunk_millionths) / (1e6 * shape.slices);
}

bool has_bytes(const MemoryModel& memory) {
  return !memory.activation_bytes.empty() || !memory.static_bytes.empty();
}

Bytes bytes_of(const MemoryAmount& held, std::int32_t rank, const MemoryModel& memory) {
  const auto at = static_cast<std::size_t>(rank);
  return held.bytes + (memory.static_bytes.empty() ? 0 : memory.static_bytes[at]);
}

}  // namespace bubblescope::traces
