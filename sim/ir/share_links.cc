// Assigns turns on a shared link by simulating steps of equal ops.
#include "sim/ir/share_links.h"

#include <algorithm>
#include <map>
#include <utility>
#include <variant>
#include <vector>

#include "sim/ir/program_draft.h"

namespace bubblescope::inline sim {

namespace {

/// A full backward takes two steps, as an input and a weight gradient; messages take none.
std::int64_t count_steps(const Instruction& instruction) {
  if (is_message(instruction)) return 0;
  return instruction.op.kind == OpKind::kBackward ? 2 : 1;
}

std::vector<std::int64_t> start_steps(const Program& program) {
  std::vector<std::int64_t> starts(program.size());
  std::vector<std::int64_t> lane_end(program.lanes.size(), 0);
  const auto end = [&](InstructionId id) {
    return starts[id] + count_steps(program.instructions[id]);
  };
  for (InstructionId id = 0; id < program.size(); ++id) {
    const std::uint32_t lane = program.instructions[id].lane;
    if (lane != kNoLane) starts[id] = lane_end[lane];
    for (const InstructionId awaited : program.dependencies_of(id))
      starts[id] = std::max(starts[id], end(awaited));
    if (lane != kNoLane) lane_end[lane] = end(id);
  }
  return starts;
}

}  // namespace

Program share_host_links(const Program& program, std::int32_t ranks_per_link) {
  const std::vector<std::int64_t> starts = start_steps(program);
  std::map<std::pair<std::int32_t, OpKind>, std::vector<InstructionId>> turns;
  for (InstructionId id = 0; id < program.size(); ++id) {
    const Instruction& instruction = program.instructions[id];
    if (is_copy(instruction.op.kind) && instruction.peer == instruction.rank)
      turns[{instruction.rank / ranks_per_link, instruction.op.kind}].push_back(id);
  }
  ProgramDraft draft(program);
  for (auto& [link, copies] : turns) {
    std::stable_sort(copies.begin(), copies.end(), [&](InstructionId left, InstructionId right) {
      return starts[left] < starts[right];
    });
    for (std::size_t at = 1; at < copies.size(); ++at)
      if (program.instructions[copies[at]].rank != program.instructions[copies[at - 1]].rank)
        draft.add_dependency(copies[at], copies[at - 1]);
  }
  // Dependencies, including turns, never start later or come later in the order than what waits for
  // them, so there is no cycle.
  return std::get<Program>(std::move(draft).finish());
}

}  // namespace bubblescope::inline sim
