// Computes the order in one pass: a program lists every instruction after its dependencies.
#include "exec/gpu/host/happens_before.h"

#include <algorithm>

namespace bubblescope::exec {

HappensBefore::Queue HappensBefore::queue_of(OpKind kind) {
  if (kind == OpKind::kEvict) return kEvict;
  return kind == OpKind::kLoad ? kLoad : kCompute;
}

HappensBefore::HappensBefore(const Program& program)
    : program_(program), place_(program.size(), 0), ended_(program.size()) {
  std::vector<Counts> last(static_cast<std::size_t>(program.ranks));  ///< counts so far
  std::vector<std::array<InstructionId, kQueues>> newest(last.size());
  for (InstructionId id = 0; id < program.size(); ++id) {
    const auto& [op, lane, rank, peer, role] = program.instructions[id];
    if (!is_compute(op.kind) && !is_copy(op.kind)) continue;
    const auto at = static_cast<std::size_t>(rank);
    const Queue queue = queue_of(op.kind);
    const auto follow = [&](InstructionId before) {
      Counts& ended = ended_[id];
      for (std::size_t each = 0; each < kQueues; ++each)
        ended[each] = std::max(ended[each], ended_[before][each]);
      std::uint32_t& own = ended[queue_of(program.instructions[before].op.kind)];
      own = std::max(own, place_[before]);
    };
    if (last[at][queue] > 0) follow(newest[at][queue]);
    for (const InstructionId before : program.dependencies_of(id))
      if (place_[before] != 0 && program.instructions[before].rank == rank) follow(before);
    place_[id] = ++last[at][queue];
    newest[at][queue] = id;
  }
}

bool HappensBefore::happens_before(InstructionId first, InstructionId then) const {
  return first != then && place_[first] != 0 &&
         place_[first] <= ended_[then][queue_of(program_.instructions[first].op.kind)];
}

}  // namespace bubblescope::exec
