// Describes a deadlock.
#include "sim/ir/program.h"

namespace bubblescope::inline sim {

std::string to_string(const Deadlock& deadlock) {
  std::string text;
  for (const Wait& wait : deadlock) {
    if (!text.empty()) text += "; ";
    text += "rank " + std::to_string(wait.rank) + " at " + to_string(wait.op) + " waits for " +
            to_string(wait.awaited);
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
