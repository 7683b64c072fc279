// Compares the ends of messages with those of their receivers' ops.
#include "sim/analysis/waiting_messages.h"

#include <set>
#include <utility>

namespace bubblescope::inline sim {

std::vector<bool> find_waiting_messages(const ObservedStep& step) {
  std::set<std::pair<std::int32_t, Nanos>> ends;
  step.for_each_compute([&](InstructionId id, const Instruction& one) {
    ends.emplace(one.rank, step.timeline.end[id]);
  });
  std::vector<bool> waits(step.program.size(), false);
  for (InstructionId id = 0; id < step.program.size(); ++id) {
    const Instruction& one = step.program.instructions[id];
    waits[id] = is_message(one) && step.duration_of(id) > 0 &&
                ends.contains({one.peer, step.timeline.end[id]});
  }
  return waits;
}

}  // namespace bubblescope::inline sim
