// The head-body-tail bound of one-machine scheduling, per rank.
#include "sim/analysis/lower_bound.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace bubblescope {

namespace {

/// Longest chains of dependencies, as if every rank could run everything at once.
struct Chains {
  std::vector<Nanos> head;  ///< per instruction: the longest chain before it
  std::vector<Nanos> tail;  ///< per instruction: the longest chain after it
};

/// The edge that makes a pair start together is the order's own, not the data's; so are those of
/// posts and waits.
bool is_data_edge(const Program& program, InstructionId from, const Instruction& to) {
  if (to.role != Role::kWork || program.instructions[from].role != Role::kWork) return false;
  if (to.op.pairing != Pairing::kFirst || to.op.kind != OpKind::kForward) return true;
  const OpKind kind = program.instructions[from].op.kind;
  return kind == OpKind::kForward || kind == OpKind::kSendForward;
}

Chains longest_chains(const Program& program, const Timeline& timeline) {
  Chains chains{std::vector<Nanos>(program.size(), 0), std::vector<Nanos>(program.size(), 0)};
  for (InstructionId id = 0; id < program.size(); ++id)
    for (const InstructionId from : program.dependencies_of(id))
      if (is_data_edge(program, from, program.instructions[id]))
        chains.head[id] = std::max(chains.head[id],
                                   chains.head[from] + timeline.end[from] - timeline.start[from]);
  for (InstructionId id = program.size(); id-- > 0;) {
    const Nanos with_me = chains.tail[id] + timeline.end[id] - timeline.start[id];
    for (const InstructionId from : program.dependencies_of(id))
      if (is_data_edge(program, from, program.instructions[id]))
        chains.tail[from] = std::max(chains.tail[from], with_me);
  }
  return chains;
}

/// All ops of one kind on one stage of a rank.
struct OpClass {
  Nanos head = std::numeric_limits<Nanos>::max();
  Nanos tail = std::numeric_limits<Nanos>::max();
  Nanos work = 0;
};

/// Largest over sets {head >= h, tail >= t} of h + work + t.
Nanos bound_of_rank(std::vector<OpClass> classes) {
  std::sort(classes.begin(), classes.end(),
            [](const OpClass& a, const OpClass& b) { return a.head > b.head; });
  Nanos bound = 0;
  for (const OpClass& shortest : classes) {
    Nanos work = 0;
    for (const OpClass& next : classes) {
      if (next.tail < shortest.tail) continue;
      work += next.work;
      bound = std::max(bound, next.head + work + shortest.tail);
    }
  }
  return bound;
}

}  // namespace

Nanos lower_bound(const Program& program, const Timeline& timeline) {
  const Chains chains = longest_chains(program, timeline);
  std::int32_t stages = 0;
  for (const Instruction& instruction : program.instructions)
    stages = std::max(stages, instruction.op.stage + 1);
  std::vector<OpClass> classes(static_cast<std::size_t>(stages) * kComputeKinds);
  std::vector<std::int32_t> rank_of_stage(stages, 0);
  Nanos bound = 0;
  for (InstructionId id = 0; id < program.size(); ++id) {
    const Instruction& instruction = program.instructions[id];
    const Nanos duration = timeline.end[id] - timeline.start[id];
    bound = std::max(bound, chains.head[id] + duration + chains.tail[id]);
    if (!is_compute(instruction.op.kind)) continue;
    rank_of_stage[instruction.op.stage] = instruction.rank;
    OpClass& op_class = classes[static_cast<std::size_t>(instruction.op.stage) * kComputeKinds +
                                static_cast<std::size_t>(instruction.op.kind)];
    op_class.head = std::min(op_class.head, chains.head[id]);
    op_class.tail = std::min(op_class.tail, chains.tail[id]);
    op_class.work += duration;
  }
  std::vector<std::vector<OpClass>> of_rank(program.ranks);
  for (std::size_t at = 0; at < classes.size(); ++at)
    if (classes[at].work > 0) of_rank[rank_of_stage[at / kComputeKinds]].push_back(classes[at]);
  for (std::vector<OpClass>& rank_classes : of_rank)
    bound = std::max(bound, bound_of_rank(std::move(rank_classes)));
  return bound;
}

}  // namespace bubblescope
