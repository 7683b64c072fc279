// Times and peaks, computed as directly as possible.
#include "tests/support/measured_schedule.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "sim/engine/simulate.h"
#include "sim/ir/error.h"
#include "sim/model/schedule_def.h"
#include "tests/support/as_written.h"

namespace bubblescope::tests {

Program lower_or_throw(const Schedule& schedule, Overlap overlap) {
  std::variant<Program, Deadlock> lowered = lower(schedule, {overlap});
  if (const Deadlock* deadlock = std::get_if<Deadlock>(&lowered))
    throw Error(Fault::kProblem, to_string(*deadlock));
  return std::get<Program>(std::move(lowered));
}

Schedule build_for_costs(const char* name, std::int32_t ranks, std::int32_t microbatches,
                         const UniformCost& cost) {
  ScheduleRequest request;
  request.shape.ranks = ranks;
  request.shape.microbatches = microbatches;
  request.cost = cost;
  return build_schedule(find_schedule(name), request);
}

Times times_of(const Program& program, const Timeline& timeline) {
  std::vector<Nanos> first_start(program.ranks, -1);
  Times times;
  for (InstructionId id = 0; id < program.size(); ++id) {
    const Instruction& instruction = program.instructions[id];
    if (is_message(instruction)) continue;
    Nanos& first = first_start[instruction.rank];
    if (first < 0) first = timeline.start[id];  // the instructions of a lane are in its order
    times.max_span = std::max(times.max_span, timeline.end[id] - first);
    times.makespan = std::max(times.makespan, timeline.end[id]);
  }
  return times;
}

Times simulate_times(const Schedule& schedule, const UniformCost& cost, Overlap overlap) {
  const Program program = lower_or_throw(schedule, overlap);
  return times_of(program, simulate(program, spread(cost, schedule)));
}

std::vector<std::int64_t> walk_peaks(const Schedule& schedule, const MemoryDelta& delta) {
  std::vector<std::int64_t> peaks;
  for (const RankOrder& ops : schedule.order) {
    std::int64_t held = 0;
    std::int64_t peak = 0;
    for (const Op& op : ops) {
      if (schedule.is_side_stage(op.stage)) continue;
      held += delta(op.kind);
      peak = std::max(peak, held);
    }
    peaks.push_back(peak);
  }
  return peaks;
}

std::string order_text(const RankOrder& ops) {
  std::string text;
  for (const Op& op : ops) {
    if (op.pairing != Pairing::kSecond && !text.empty()) text += ' ';
    if (op.pairing == Pairing::kFirst)
      text += '(' + to_string(op) + ';';
    else
      text += to_string(op);
    if (op.pairing == Pairing::kSecond) text += ")OVERLAP_F_B";
  }
  return text;
}

}  // namespace bubblescope::tests
