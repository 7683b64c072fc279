// Searches a Program for reductions and optimizer steps.
#include "exec/training/program_updates.h"

#include <algorithm>
#include <tuple>

#include "sim/ir/error.h"

namespace bubblescope::exec {

bool publishes_gradients(const Instruction& instruction) {
  return instruction.op.kind == OpKind::kReduceGrad && instruction.role == Role::kPost;
}

std::vector<InstructionId> posts_of(const Program& program, InstructionId reader) {
  std::vector<InstructionId> posts;
  for (const InstructionId dependency : program.dependencies_of(reader))
    if (publishes_gradients(program.instructions[dependency])) posts.push_back(dependency);
  const auto place = [&](InstructionId post) {
    const Instruction& instruction = program.instructions[post];
    return std::tuple(instruction.op.stage, instruction.rank, post);
  };
  std::sort(posts.begin(), posts.end(),
            [&](InstructionId left, InstructionId right) { return place(left) < place(right); });
  return posts;
}

ProgramUpdates find_program_updates(const Schedule& schedule, const Program& program) {
  const StageReplicas stage_replicas(schedule);
  std::vector<bool> summed(stage_replicas.size(), false);
  bool steps = false;
  for (InstructionId id = 0; id < program.size(); ++id) {
    const auto& [op, lane, rank, peer, role] = program.instructions[id];
    steps = steps || op.kind == OpKind::kOptimizer;
    if (op.kind == OpKind::kReduceGrad && role == Role::kWork && !posts_of(program, id).empty())
      summed[stage_replicas.find(op.stage, rank)] = true;
  }
  ProgramUpdates in_program{true, steps};
  for (StageReplica replica = 0; replica < stage_replicas.size(); ++replica)
    in_program.reduces =
        in_program.reduces && (summed[replica] || stage_replicas.sharing(replica).size() == 1);
  in_program.updates = steps && in_program.reduces;
  if (schedule.weights.empty()) return in_program;
  if (schedule.replicas_of_stage.empty()) return {in_program.reduces, false};
  if (in_program.updates) return in_program;
  throw Error(schedule.name +
              ": replicas of a stage must sum their gradients in every update; add "
              "`optimizer` local");
}

}  // namespace bubblescope::exec
