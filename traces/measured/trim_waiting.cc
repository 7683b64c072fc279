// Walks from every op to the producers of its inputs.
#include "traces/measured/trim_waiting.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace bubblescope::traces {

namespace {

/// Calls `visit(producer)` for every compute op whose result `id` needs, directly or by message.
template <class Visit>
void for_each_producer(const Program& program, InstructionId id, Visit visit) {
  for (const InstructionId awaited : program.dependencies_of(id)) {
    if (is_compute(program.instructions[awaited].op.kind))
      visit(awaited);
    else if (is_message(program.instructions[awaited]) && !program.dependencies_of(awaited).empty())
      visit(program.dependencies_of(awaited).front());
  }
}

}  // namespace

TrimmedWaiting trim_waiting(const Program& program, const std::vector<bool>& may_hold_waiting,
                            Timeline timeline) {
  TrimmedWaiting trimmed{std::move(timeline)};
  std::vector<Nanos>& starts = trimmed.timeline.start;
  const std::vector<Nanos>& ends = trimmed.timeline.end;
  for (InstructionId id = 0; id < program.size(); ++id) {
    if (!may_hold_waiting[id]) continue;
    Nanos ready = starts[id];
    for_each_producer(program, id,
                      [&](InstructionId producer) { ready = std::max(ready, ends[producer]); });
    const Nanos start = std::min(ready, ends[id]);
    if (start == starts[id]) continue;
    ++trimmed.ops;
    trimmed.largest = std::max(trimmed.largest, start - starts[id]);
    starts[id] = start;
  }
  return trimmed;
}

std::optional<EarlyOp> find_earliest_op(const Program& program, const Timeline& timeline,
                                        const std::vector<bool>& counts) {
  std::optional<EarlyOp> worst;
  for (InstructionId id = 0; id < program.size(); ++id) {
    if (!counts[id] || !is_compute(program.instructions[id].op.kind)) continue;
    for_each_producer(program, id, [&](InstructionId producer) {
      const Nanos early = timeline.end[producer] - timeline.start[id];
      if (early > 0 && (!worst || early > worst->early)) worst = EarlyOp{id, producer, early};
    });
  }
  return worst;
}

std::string describe_early_op(const EarlyOp& early, const Program& program) {
  const Instruction& op = program.instructions[early.op];
  const Instruction& needed = program.instructions[early.needed];
  return fmt::format(
      "{} on rank {} begins {} before its input {} on rank {} has ended: clocks differ, ranks "
      "are of other steps or runs, or the file was changed",
      to_string(op.op), op.rank, to_text(early.early), to_string(needed.op), needed.rank);
}

}  // namespace bubblescope::traces
