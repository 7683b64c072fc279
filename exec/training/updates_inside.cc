// Searches a Program for reductions and optimizer steps.
#include "exec/training/updates_inside.h"

#include <algorithm>
#include <tuple>

#include "sim/ir/error.h"

namespace bubblescope {

bool hands_gradients_on(const Instruction& instruction) {
  return instruction.op.kind == OpKind::kReduceGrad && instruction.role == Role::kPost;
}

std::vector<InstructionId> posts_of(const Program& program, InstructionId reader) {
  std::vector<InstructionId> posts;
  for (const InstructionId dependency : program.dependencies_of(reader))
    if (hands_gradients_on(program.instructions[dependency])) posts.push_back(dependency);
  const auto place = [&](InstructionId post) {
    const Instruction& instruction = program.instructions[post];
    return std::tuple(instruction.op.stage, instruction.rank, post);
  };
  std::sort(posts.begin(), posts.end(),
            [&](InstructionId left, InstructionId right) { return place(left) < place(right); });
  return posts;
}

UpdatesInside find_updates_inside(const Schedule& schedule, const Program& program) {
  const Homes homes(schedule);
  std::vector<bool> summed(homes.size(), false);
  bool steps = false;
  for (InstructionId id = 0; id < program.size(); ++id) {
    const auto& [op, lane, rank, peer, role] = program.instructions[id];
    steps = steps || op.kind == OpKind::kOptimizer;
    if (op.kind == OpKind::kReduceGrad && role == Role::kWork && !posts_of(program, id).empty())
      summed[homes.find(op.stage, rank)] = true;
  }
  UpdatesInside inside{true, steps};
  for (Home home = 0; home < homes.size(); ++home)
    inside.reduces = inside.reduces && (summed[home] || homes.sharing(home).size() == 1);
  inside.updates = steps && inside.reduces;
  if (schedule.weights.empty()) return inside;
  if (schedule.replicas_of_stage.empty()) return {inside.reduces, false};
  if (inside.updates) return inside;
  throw Error(schedule.name +
              ": replicas of a stage add up their gradients in every update; ask for these with "
              "--optimizer local");
}

}  // namespace bubblescope
