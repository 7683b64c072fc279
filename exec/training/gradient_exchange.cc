// Stores posted gradients until all readers have taken them.
#include "exec/training/gradient_exchange.h"

#include <string>
#include <utility>

#include "exec/training/matrix_blob.h"
#include "sim/ir/error.h"

namespace bubblescope::exec {

GradientExchange::GradientExchange(const Program& program, const Processes& processes)
    : program_(program) {
  for (InstructionId id = 0; id < program.size(); ++id)
    if (program.instructions[id].op.kind == OpKind::kReduceGrad)
      for (const InstructionId post : posts_of(program, id))
        readers_[post] += processes.runs(program.instructions[id].rank) ? 1 : 0;
}

void GradientExchange::put(InstructionId post, std::vector<Matrix> gradients) {
  const std::lock_guard lock(mutex_);
  posted_[post] = {std::move(gradients), readers_of(post)};
}

std::vector<Matrix> GradientExchange::sum(InstructionId reader) {
  std::vector<Matrix> total;
  for (const InstructionId post : posts_of(program_, reader)) {
    const std::vector<Matrix>& gradients = find(post, reader);
    if (total.empty())
      total = gradients;
    else
      for (std::size_t at = 0; at < total.size(); ++at) add(total[at], gradients[at]);
    release(post);
  }
  return total;
}

Blob GradientExchange::pack(InstructionId post) {
  BlobWriter writer;
  write_matrices(writer, find(post, post));
  if (readers_of(post) == 0) release(post);
  return writer.take();
}

std::int32_t GradientExchange::readers_of(InstructionId post) const {
  const auto found = readers_.find(post);
  return found == readers_.end() ? 0 : found->second;
}

/// The reference stays valid while the post has readers, because a map does not move its elements.
const std::vector<Matrix>& GradientExchange::find(InstructionId post, InstructionId reader) {
  const std::lock_guard lock(mutex_);
  const auto found = posted_.find(post);
  if (found != posted_.end()) return found->second.gradients;
  const Instruction& lacking = program_.instructions[post];
  throw Error(Fault::kProblem, to_string(program_.instructions[reader].op) + " runs before rank " +
                                   std::to_string(lacking.rank) +
                                   " has posted its gradients of stage " +
                                   std::to_string(lacking.op.stage));
}

void GradientExchange::release(InstructionId post) {
  const std::lock_guard lock(mutex_);
  if (--posted_[post].readers <= 0) posted_.erase(post);
}

}  // namespace bubblescope::exec
