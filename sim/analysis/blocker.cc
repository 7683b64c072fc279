// Finds blockers from lanes, dependencies and the ranks at the two ends of messages.
#include "sim/analysis/blocker.h"

#include <algorithm>
#include <cstdlib>
#include <tuple>

#include "sim/ir/lane_order.h"

namespace bubblescope::inline sim {

namespace {

/// Whether an instruction starts no later than something that it waited for ends, as all do in a
/// simulated step unless they wait for nothing. Cheaper than finding what ended last.
bool starts_when_free(const Program& program, const Timeline& timeline, InstructionId previous,
                      InstructionId id) {
  const Nanos start = timeline.start[id];
  const auto holds = [&](InstructionId other, Nanos gap) {
    return timeline.end[other] + gap >= start &&
           std::tie(timeline.start[other], other) < std::tie(start, id);
  };
  if (previous != kNoInstruction && holds(previous, timeline.gap_before(id))) return true;
  for (const InstructionId dependency : program.dependencies_of(id))
    if (holds(dependency, 0)) return true;
  return false;
}

}  // namespace

Blockers::Blockers(const Program& program, const Timeline& timeline)
    : program_(program), timeline_(timeline), previous_in_lane_(find_previous_in_lane(program)) {
  bool all_explained = true;
  for (InstructionId id = 0; id < program.size() && all_explained; ++id)
    all_explained =
        starts_when_free(program, timeline, previous_in_lane_[id], id) || !blocker(id).has_value();
  if (!all_explained) find_unstated();
}

void Blockers::note_sender(InstructionId message) {
  for (const InstructionId producer : program_.dependencies_of(message)) {
    InstructionId& sent = sent_[producer];
    if (sent == kNoInstruction || timeline_.end[message] > timeline_.end[sent]) sent = message;
  }
}

void Blockers::find_unstated() {
  computes_.resize(static_cast<std::size_t>(program_.ranks));
  sent_.resize(program_.size(), kNoInstruction);
  for (InstructionId id = 0; id < program_.size(); ++id) {
    const Instruction& instruction = program_.instructions[id];
    if (is_message(instruction)) note_sender(id);
    if (instruction.lane != kNoLane && is_compute(instruction.op.kind))
      computes_[instruction.rank].push_back(id);
  }
  std::vector<InstructionId> found;
  for (InstructionId id = 0; id < program_.size(); ++id) {
    const InstructionId unstated = find_unstated_blocker(id);
    if (unstated == kNoInstruction) continue;
    found.resize(program_.size(), kNoInstruction);
    found[id] = unstated;
  }
  unstated_ = std::move(found);
}

InstructionId Blockers::find_unstated_blocker(InstructionId id) const {
  const std::optional<InstructionId> stated = blocker(id);
  if (!stated) return kNoInstruction;
  const Nanos free_from = released_at(id, *stated);
  if (free_from >= timeline_.start[id]) return kNoInstruction;
  const Instruction& instruction = program_.instructions[id];
  if (is_message(instruction)) return find_late_end(id, free_from);
  if (is_compute(instruction.op.kind) && timeline_.is_imported)
    return find_blocking_send(id, free_from);
  return kNoInstruction;
}

InstructionId Blockers::find_late_end(InstructionId message, Nanos free_from) const {
  const Nanos start = timeline_.start[message];
  Nanos distance = start - free_from;
  InstructionId nearest = kNoInstruction;
  const auto ends_before = [&](InstructionId op, Nanos time) { return timeline_.end[op] < time; };
  const Instruction& instruction = program_.instructions[message];
  for (const std::int32_t rank : {instruction.rank, instruction.peer}) {
    const std::vector<InstructionId>& ops = computes_[rank];
    auto op = std::lower_bound(ops.begin(), ops.end(), start, ends_before);
    if (op != ops.begin()) --op;
    for (; op != ops.end() && timeline_.start[*op] < start; ++op) {
      const Nanos apart = std::abs(timeline_.end[*op] - start);
      if (timeline_.end[*op] > timeline_.end[message] || apart >= distance) continue;
      nearest = *op;
      distance = apart;
    }
  }
  return nearest;
}

InstructionId Blockers::find_blocking_send(InstructionId op, Nanos free_from) const {
  const InstructionId before = previous_in_lane_[op];
  if (before == kNoInstruction || sent_[before] == kNoInstruction) return kNoInstruction;
  const Nanos end = timeline_.end[sent_[before]];
  return free_from < end && end <= timeline_.start[op] ? sent_[before] : kNoInstruction;
}

std::optional<InstructionId> Blockers::find_last_dependency(InstructionId id) const {
  std::optional<InstructionId> latest;
  for (const InstructionId dependency : program_.dependencies_of(id))
    if (!latest || timeline_.end[dependency] > timeline_.end[*latest]) latest = dependency;
  return latest;
}

std::optional<InstructionId> Blockers::blocker(InstructionId id) const {
  std::optional<InstructionId> latest;
  for_each_awaited(id, [&](InstructionId earlier) {
    if (!latest || released_at(id, earlier) > released_at(id, *latest)) latest = earlier;
  });
  return latest;
}

}  // namespace bubblescope::inline sim
