// Describes a deadlock.
#include "sim/ir/program.h"

#include <algorithm>

namespace bubblescope::inline sim {

namespace {

bool has_slices(const Deadlock& deadlock) {
  return std::any_of(deadlock.begin(), deadlock.end(),
                     [](const Wait& wait) { return wait.op.slice > 0 || wait.awaited.slice > 0; });
}

}  // namespace

std::string to_string(const Deadlock& deadlock) {
  std::string text;
  // "0F0" beside "0F0.1" would be all slices.
  const bool is_sliced = has_slices(deadlock);
  const auto name = [&](const Op& op) {
    return to_string(op) +
           (is_sliced && op.slice == 0 && has_microbatch(op.kind) ? std::string(".0") : "");
  };
  for (const Wait& wait : deadlock) {
    if (!text.empty()) text += "; ";
    text += "rank " + std::to_string(wait.rank) + " at " + name(wait.op) + " waits for " +
            name(wait.awaited);
    if (wait.awaited_rank != wait.rank) text += " of rank " + std::to_string(wait.awaited_rank);
    if (wait.by_after_edge) text += " (after edge)";
  }
  return text;
}

std::string to_string(const Instruction& instruction) {
  const Op& op = instruction.op;
  if (!is_arrival(instruction)) return to_string(op);
  return std::to_string(op.stage) + "ARRIVE" + std::to_string(op.microbatch);
}

}  // namespace bubblescope::inline sim
