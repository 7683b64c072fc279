// Waits for the duration of each instruction.
#include "exec/runtime/timed_work.h"

#include "sim/ir/error.h"

namespace bubblescope::exec {

Work play(const Program& program, std::span<const Nanos> durations, WaitMode wait_mode) {
  return [&program, durations, wait_mode](const WorkItem& item) {
    if (item.damage != Damage::kNone)
      throw Error(
          "ops that only pass time send no payload that could be damaged; use `work` "
          "transformer");
    const bool keeps_time = wait_mode == WaitMode::kSleep;
    const Nanos begin = keeps_time ? item.ready : item.clock.now();
    const Nanos end = begin + durations[item.id];
    if (program.instructions[item.id].lane != kNoLane) item.clock.wait_until(end, wait_mode);
    return keeps_time ? end : item.clock.now();
  };
}

}  // namespace bubblescope::exec
