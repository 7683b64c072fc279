// Reverses the dependencies of a program, and counts them.
#include "exec/runtime/pending_dependencies.h"

namespace bubblescope::exec {

PendingDependencies::PendingDependencies(const Program& program, const IsKept& is_kept)
    : begin_(program.size() + 1, 0),
      needed_(program.size(), 0),
      missing_(std::make_unique<std::atomic<std::int32_t>[]>(program.size())) {
  for (InstructionId id = 0; id < program.size(); ++id)
    for (const InstructionId dependency : program.dependencies_of(id))
      if (!is_kept(dependency, id)) {
        ++needed_[id];
        ++begin_[dependency + 1];
      }
  for (InstructionId id = 0; id < program.size(); ++id) begin_[id + 1] += begin_[id];
  dependents_.resize(begin_.back());
  std::vector<std::uint32_t> next(begin_.begin(), begin_.end() - 1);
  for (InstructionId id = 0; id < program.size(); ++id)
    for (const InstructionId dependency : program.dependencies_of(id))
      if (!is_kept(dependency, id)) dependents_[next[dependency]++] = id;
}

void PendingDependencies::reset() {
  for (std::size_t id = 0; id < needed_.size(); ++id)
    missing_[id].store(needed_[id], std::memory_order_relaxed);
}

}  // namespace bubblescope::exec
