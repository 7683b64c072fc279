// Matches the two ends of every message, and places it between its producer and its consumer.
#include "traces/measured/message_times.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "sim/ir/depend.h"

namespace bubblescope::traces {

namespace {

/// The two ends of one message, as far as they were observed.
struct ObservedEnds {
  std::optional<Nanos> send_start, send_end;
  std::optional<Nanos> receive_start, receive_end;
  bool is_taken_by_host = false;  ///< the recorded receive ends when its rank takes the message
};

/// The values that messages of one kind carry from or to one rank, one per op of the matching
/// direction, in the rank's order; nullopt for ops whose value stays on the rank.
std::vector<std::optional<Value>> values_in_order(const Schedule& schedule, std::int32_t rank,
                                                  OpKind message) {
  std::vector<std::optional<Value>> values;
  for (const Op& op : schedule.order[rank]) {
    const bool matches =
        carries_activation(message) ? op.kind == OpKind::kForward : gives_input_grad(op.kind);
    if (!matches) continue;
    Op end = op;
    end.kind = message;
    std::optional<Value> value = find_carried_value(schedule, end);
    if (value) {
      const std::int32_t to = receiving_stage(schedule, *value).value_or(value->stage);
      if (schedule.rank_of(value->stage, value->microbatch) ==
          schedule.rank_of(to, value->microbatch))
        value.reset();
    }
    values.push_back(value);
  }
  return values;
}

class Matching {
 public:
  explicit Matching(const Schedule& schedule)
      : schedule_(schedule), index_(schedule), ends_(index_.size()) {}

  void add_all(std::vector<ObservedOp> messages) {
    std::stable_sort(messages.begin(), messages.end(),
                     [](const ObservedOp& left, const ObservedOp& right) {
                       return std::tie(left.start, left.end) < std::tie(right.start, right.end);
                     });
    std::map<std::pair<std::int32_t, OpKind>, std::vector<ObservedOp>> unnumbered;
    for (const ObservedOp& message : messages) {
      if (!message.numbered)
        unnumbered[{message.recorder, message.op.kind}].push_back(message);
      else if (const std::optional<Value> value = find_carried_value(schedule_, message.op))
        add(*value, message);
    }
    for (const auto& [place, list] : unnumbered)
      assign(values_in_order(schedule_, place.first, place.second), list);
  }

  const ObservedEnds& ends_of(const Op& message) const {
    static const ObservedEnds none;
    const std::optional<Value> value = find_carried_value(schedule_, message);
    return value ? ends_[index_(*value)] : none;
  }

 private:
  /// Assigns the values to the recorded messages in order. Some runtimes record a message for every
  /// op, even where none was sent; those are skipped.
  void assign(std::vector<std::optional<Value>> values, const std::vector<ObservedOp>& list) {
    if (values.size() != list.size()) std::erase(values, std::nullopt);
    if (values.size() != list.size()) return;
    for (std::size_t at = 0; at < list.size(); ++at)
      if (values[at]) add(*values[at], list[at]);
  }

  void add(const Value& value, const ObservedOp& message) {
    ObservedEnds& ends = ends_[index_(value)];
    if (is_send(message.op.kind)) {
      ends.send_start = message.start;
      ends.send_end = message.end;
    } else {
      // A receive may be recorded twice: where it was posted, and where it was waited for.
      ends.receive_start = std::min(ends.receive_start.value_or(message.start), message.start);
      ends.receive_end = std::max(ends.receive_end.value_or(message.end), message.end);
      ends.is_taken_by_host = ends.is_taken_by_host || message.may_hold_waiting;
    }
  }

  const Schedule& schedule_;
  ValueIndex index_;
  std::vector<ObservedEnds> ends_;
};

/// For each message, the time at which the receiver ended the op before the one that consumes the
/// message, if there is such an op.
std::vector<std::optional<Nanos>> receivers_free(const Program& program, const Timeline& timeline) {
  std::vector<std::optional<Nanos>> free(program.size());
  std::vector<std::optional<InstructionId>> before(program.lanes.size());
  for (InstructionId id = 0; id < program.size(); ++id) {
    const std::uint32_t lane = program.instructions[id].lane;
    if (lane == kNoLane || !is_compute(program.instructions[id].op.kind)) continue;
    if (before[lane])
      for (const InstructionId awaited : program.dependencies_of(id))
        free[awaited] = std::max(free[awaited].value_or(timeline.end[*before[lane]]),
                                 timeline.end[*before[lane]]);
    before[lane] = id;
  }
  return free;
}

/// The arrival time of a message that its rank took at `taken`. If the rank was busy while the
/// message travelled and took it almost immediately afterwards, the message had arrived by then:
/// the rank itself was late.
Nanos arrival(Nanos start, Nanos taken, std::optional<Nanos> receiver_free) {
  constexpr Nanos kNoticeable = 50;  // 1/50 of the travel time, 2 %
  const bool was_busy = receiver_free && *receiver_free > start && *receiver_free < taken;
  if (!was_busy) return taken;
  const bool waited = taken - *receiver_free > (taken - start) / kNoticeable;
  return waited ? taken : *receiver_free;
}

}  // namespace

Timeline time_messages(const Schedule& schedule, const Program& program,
                       std::vector<ObservedOp> messages, Timeline timeline) {
  Matching matching(schedule);
  matching.add_all(std::move(messages));
  std::vector<Nanos> needed(program.size(), std::numeric_limits<Nanos>::max());
  for (InstructionId id = 0; id < program.size(); ++id)
    if (!is_message(program.instructions[id]))
      for (const InstructionId awaited : program.dependencies_of(id))
        needed[awaited] = std::min(needed[awaited], timeline.start[id]);
  const std::vector<std::optional<Nanos>> free = receivers_free(program, timeline);
  for (InstructionId id = 0; id < program.size(); ++id) {
    if (!is_message(program.instructions[id])) continue;
    const Nanos ready = timeline.end[program.dependencies_of(id).front()];
    const Nanos latest = std::max(ready, needed[id]);
    const ObservedEnds& ends = matching.ends_of(program.instructions[id].op);
    const Nanos start =
        std::max({ready, ends.send_start.value_or(ready), ends.receive_start.value_or(ready)});
    const Nanos end = ends.receive_end.value_or(ends.send_end.value_or(ready));
    timeline.start[id] = std::min(start, latest);
    timeline.end[id] = std::clamp(end, timeline.start[id], latest);
    if (ends.is_taken_by_host)
      timeline.end[id] = arrival(timeline.start[id], timeline.end[id], free[id]);
  }
  return timeline;
}

}  // namespace bubblescope::traces
