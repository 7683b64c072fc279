// Prefix sums over every rank's order.
#include "sim/analysis/memory_curve.h"

#include <algorithm>

namespace bubblescope {

namespace {

/// A running sum and the highest it has been.
struct Level {
  std::int64_t now = 0;
  std::int64_t highest = 0;

  bool add(std::int64_t delta) {
    now += delta;
    if (now <= highest) return false;
    highest = now;
    return true;
  }
};

struct RankLevels {
  Level half_chunks;
  Level unit;
  Level bytes;
  std::optional<InstructionId> at;
};

}  // namespace

std::vector<Peak> find_peaks(const Schedule& schedule, const Program& program,
                             const MemoryModel& memory) {
  const MemoryDelta half_chunk = half_chunks(memory.release);
  std::vector<RankLevels> levels(program.ranks);
  for (InstructionId id = 0; id < program.size(); ++id) {
    const Instruction& instruction = program.instructions[id];
    if (!is_compute(instruction.op.kind)) continue;
    RankLevels& rank = levels[instruction.rank];
    if (rank.half_chunks.add(half_chunk(instruction.op.kind))) rank.at = id;
    rank.unit.add(memory.unit(instruction.op.kind));
    if (!memory.activation_bytes.empty())
      rank.bytes.add(memory.activation_bytes[instruction.op.stage](instruction.op.kind));
  }
  std::vector<Peak> peaks(program.ranks);
  const double slices = schedule.shape.slices;
  for (std::int32_t rank = 0; rank < program.ranks; ++rank) {
    const RankLevels& level = levels[rank];
    Peak& peak = peaks[rank];
    peak.chunks = static_cast<double>(level.half_chunks.highest) / (2 * slices);
    peak.activations = peak.chunks / schedule.shape.chunks;
    peak.units = static_cast<double>(level.unit.highest) / (1e6 * memory.unit_parts);
    peak.at = level.at;
    if (!memory.activation_bytes.empty() || !memory.static_bytes.empty())
      peak.bytes =
          level.bytes.highest + (memory.static_bytes.empty() ? 0 : memory.static_bytes[rank]);
  }
  return peaks;
}

std::vector<std::int64_t> held_half_chunks(const Program& program, Release release) {
  const MemoryDelta half_chunk = half_chunks(release);
  std::vector<std::int64_t> now(program.ranks, 0);
  std::vector<std::int64_t> held(program.size(), 0);
  for (InstructionId id = 0; id < program.size(); ++id) {
    const Instruction& instruction = program.instructions[id];
    if (is_compute(instruction.op.kind))
      held[id] = now[instruction.rank] += half_chunk(instruction.op.kind);
  }
  return held;
}

}  // namespace bubblescope
