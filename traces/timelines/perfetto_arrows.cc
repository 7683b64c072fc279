// Finds producers and consumers of messages, and gaps by the op after them.
#include "traces/timelines/perfetto_arrows.h"

#include <fmt/format.h>

#include <algorithm>

#include "traces/text/wording.h"
#include "traces/timelines/step_details.h"

namespace bubblescope::traces {

namespace {

/// Pairs each op with the messages that carry its value, if these wait for the op and not for a
/// queue.
std::vector<std::pair<InstructionId, InstructionId>> find_produced(
    const Program& program, const std::vector<InstructionId>& consumers) {
  std::vector<std::pair<InstructionId, InstructionId>> produced;
  for (InstructionId id = 0; id < program.size(); ++id) {
    if (consumers[id] == kNoInstruction) continue;
    for (const InstructionId dependency : program.dependencies_of(id))
      if (is_compute(program.instructions[dependency].op.kind))
        produced.emplace_back(dependency, id);
  }
  std::sort(produced.begin(), produced.end());
  return produced;
}

}  // namespace

MessageFlows::MessageFlows(const Program& program, std::uint64_t first)
    : program_(program),
      first_(first),
      consumers_(find_consumers(program)),
      produced_(find_produced(program, consumers_)) {}

void MessageFlows::write(PerfettoSlice& slice, InstructionId id) const {
  if (consumers_[id] != kNoInstruction) slice.flow(flow_of(id));
  auto produced =
      std::lower_bound(produced_.begin(), produced_.end(), std::pair(id, InstructionId{0}));
  for (; produced != produced_.end() && produced->first == id; ++produced)
    slice.flow(flow_of(produced->second));
  for (const InstructionId dependency : program_.dependencies_of(id))
    if (consumers_[dependency] == id) slice.end_flow(flow_of(dependency));
}

WaitsBefore::WaitsBefore(const Program& program, const std::vector<IdleGap>& gaps)
    : gaps_(gaps), first_(program.size(), gaps.size()) {
  for (std::size_t gap = gaps.size(); gap-- > 0;)
    if (gaps[gap].before) first_[*gaps[gap].before] = gap;
}

void WaitsBefore::annotate(PerfettoSlice& slice, InstructionId id) const {
  for (std::size_t gap = first_[id]; gap < gaps_.size() && gaps_[gap].before == id; ++gap)
    slice.annotate(fmt::format("idle_{}_ns", name(gaps_[gap].cause)),
                   gaps_[gap].end - gaps_[gap].start);
}

}  // namespace bubblescope::traces
