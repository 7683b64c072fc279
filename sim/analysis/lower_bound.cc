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

/// The edges by which a pair starts or ends together are the order's own, not the data's: a forward
/// waits for forwards of its own micro-batch, and what it sends is there when it ends.
bool is_data_edge(const Program& program, InstructionId from, const Instruction& to) {
  const bool pair = to.op.kind == OpKind::kForward && to.op.pairing == Pairing::kFirst;
  if (!pair && to.op.kind != OpKind::kSendForward) return true;
  const Op& made = program.instructions[from].op;
  if (to.op.kind == OpKind::kSendForward) return !gives_input_grad(made.kind);
  const bool forward = made.kind == OpKind::kForward || made.kind == OpKind::kSendForward;
  return forward && made.microbatch == to.op.microbatch;
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

/// All ops of one kind on one stage of a rank: what its compute lane runs one at a time.
struct OpClass {
  Nanos head = std::numeric_limits<Nanos>::max();
  Nanos tail = std::numeric_limits<Nanos>::max();
  Nanos work = 0;
};

/// Numbers the (stage, rank) pairs that can occur: the replicas of a stage are on consecutive
/// ranks.
class Homes {
 public:
  explicit Homes(const Program& program) {
    for (const Instruction& instruction : program.instructions) {
      const auto stage = static_cast<std::size_t>(instruction.op.stage);
      if (stage >= homes_.size()) homes_.resize(stage + 1);
      homes_[stage].first_rank = std::min(homes_[stage].first_rank, instruction.rank);
      homes_[stage].last_rank = std::max(homes_[stage].last_rank, instruction.rank);
    }
    for (Home& home : homes_) {
      home.begin = size_;
      if (home.last_rank >= home.first_rank)
        size_ += static_cast<std::size_t>(home.last_rank - home.first_rank + 1);
    }
  }

  std::size_t size() const { return size_; }
  std::size_t operator()(const Instruction& instruction) const {
    const Home& home = homes_[static_cast<std::size_t>(instruction.op.stage)];
    return home.begin + static_cast<std::size_t>(instruction.rank - home.first_rank);
  }

 private:
  struct Home {
    std::int32_t first_rank = std::numeric_limits<std::int32_t>::max();
    std::int32_t last_rank = 0;
    std::size_t begin = 0;
  };
  std::vector<Home> homes_;
  std::size_t size_ = 0;
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
  const Homes homes(program);
  std::vector<OpClass> classes(homes.size() * kOpKinds);
  std::vector<std::int32_t> rank_of_home(homes.size(), 0);
  Nanos bound = 0;
  for (InstructionId id = 0; id < program.size(); ++id) {
    const Instruction& instruction = program.instructions[id];
    const Nanos duration = timeline.end[id] - timeline.start[id];
    bound = std::max(bound, chains.head[id] + duration + chains.tail[id]);
    if (instruction.lane >= static_cast<std::uint32_t>(program.ranks)) continue;
    const std::size_t home = homes(instruction);
    rank_of_home[home] = instruction.rank;
    OpClass& op_class = classes[home * kOpKinds + static_cast<std::size_t>(instruction.op.kind)];
    op_class.head = std::min(op_class.head, chains.head[id]);
    op_class.tail = std::min(op_class.tail, chains.tail[id]);
    op_class.work += duration;
  }
  std::vector<std::vector<OpClass>> of_rank(program.ranks);
  for (std::size_t at = 0; at < classes.size(); ++at)
    if (classes[at].work > 0) of_rank[rank_of_home[at / kOpKinds]].push_back(classes[at]);
  for (std::vector<OpClass>& rank_classes : of_rank)
    bound = std::max(bound, bound_of_rank(std::move(rank_classes)));
  return bound;
}

}  // namespace bubblescope
