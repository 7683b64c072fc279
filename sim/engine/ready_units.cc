// Joins the ops of pairs.
#include "sim/engine/ready_units.h"

#include <algorithm>
#include <utility>

namespace bubblescope::inline sim {

std::vector<std::vector<ReadyUnit>> list_ready_units(const Program& program,
                                                     const ReadyRules& rules) {
  std::vector<std::vector<ReadyUnit>> units(static_cast<std::size_t>(program.ranks));
  for (InstructionId id = 0; id < program.size(); ++id) {
    const Instruction& instruction = program.instructions[id];
    if (instruction.lane >= units.size()) continue;
    std::vector<ReadyUnit>& of_rank = units[instruction.lane];
    if (instruction.op.pairing != Pairing::kSecond)
      of_rank.push_back({id, id, {}, !is_compute(instruction.op.kind)});
    ReadyUnit& unit = of_rank.back();
    unit.last = id;
    unit.memory.net += rules.memory[id];
    unit.memory.peak = std::max(unit.memory.peak, unit.memory.net);
  }
  return units;
}

MemoryBound bound_of(const std::vector<ReadyUnit>& units) {
  std::vector<MemoryStep> steps;
  for (const ReadyUnit& unit : units) steps.push_back(unit.memory);
  return MemoryBound(std::move(steps));
}

}  // namespace bubblescope::inline sim
