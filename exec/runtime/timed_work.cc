// Passes time.
#include "exec/runtime/timed_work.h"

#include <algorithm>

#include "sim/ir/error.h"

namespace bubblescope {

Work play(const Program& program, std::span<const Nanos> durations, Pass pass) {
  return [&program, durations, pass](const Turn& turn) {
    if (turn.damage != Damage::kNone)
      throw Error(
          "ops that only let time pass send nothing that could be damaged; use --work "
          "transformer");
    const bool keeps_time = pass == Pass::kSleep;
    const Nanos begin = keeps_time ? turn.ready : turn.clock.now();
    const Nanos end = begin + durations[turn.id];
    if (program.instructions[turn.id].lane != kNoLane) turn.clock.pass_until(end, pass);
    return keeps_time ? end : turn.clock.now();
  };
}

}  // namespace bubblescope
