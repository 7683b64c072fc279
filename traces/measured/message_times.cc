// Matches the two ends of every message, and places it between its producer and its consumer.
#include "traces/measured/message_times.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/ir/depend.h"
#include "sim/ir/quantile.h"

namespace bubblescope::traces {

namespace {

/// The two ends of one message, as far as they were observed.
struct ObservedEnds {
  std::optional<Nanos> send_start, send_end;
  std::optional<Nanos> posted;  ///< where the receive was recorded, not only that its rank waited
  std::optional<Nanos> receive_start, receive_end;
  bool is_taken_by_host = false;     ///< the recorded receive ends when its rank takes the message
  std::optional<Nanos> waited_from;  ///< when that rank came to wait for it
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
    // The wait for a message counts apart from the range that receives it.
    std::map<std::tuple<std::int32_t, OpKind, bool>, std::vector<ObservedOp>> unnumbered;
    for (const ObservedOp& message : messages) {
      if (!message.numbered)
        unnumbered[{message.recorder, message.op.kind, message.may_hold_waiting}].push_back(
            message);
      else if (const std::optional<Value> value = find_carried_value(schedule_, message.op))
        add(*value, message);
    }
    for (const auto& [place, list] : unnumbered)
      assign(values_in_order(schedule_, std::get<0>(place), std::get<1>(place)), list);
  }

  const ObservedEnds& ends_of(const Op& message) const {
    static const ObservedEnds none;
    const std::optional<Value> value = find_carried_value(schedule_, message);
    return value ? ends_[index_(*value)] : none;
  }

 private:
  /// Assigns the values to the recorded messages in order, if there are as many. Some runtimes
  /// record a message for every op, even where none was sent; those are skipped.
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
      if (!message.may_hold_waiting)
        ends.posted = std::min(ends.posted.value_or(message.start), message.start);
      ends.is_taken_by_host = ends.is_taken_by_host || message.may_hold_waiting;
      if (message.waited_from) ends.waited_from = message.waited_from;
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

/// A message that its rank's host took.
struct Taken {
  Nanos start = 0;                     ///< of its transit
  Nanos end = 0;                       ///< when the rank took it
  std::optional<Nanos> receiver_free;  ///< when the rank had ended the op before
  std::optional<Nanos> waited_from;    ///< when the rank came to wait for the message
};

/// Whether the rank took the message almost as soon as it came to wait for it, so that the message
/// had arrived by then. Its travel time is unknown, and at most the time until the rank came.
bool had_arrived(const Taken& message) {
  constexpr Nanos kNoticeable = 50;   // 1/50 of the travel time, 2 %
  constexpr Nanos kAtOnce = 200'000;  // such a wait returns within this time
  constexpr Nanos kMaxAtOnce = 4;     // but takes at most 1/4 of the travel time
  std::optional<Nanos> came = message.receiver_free;
  if (message.waited_from)
    came = std::max(came.value_or(*message.waited_from), *message.waited_from);
  if (!came || *came <= message.start || *came >= message.end) return false;
  const Nanos travel = message.end - message.start;
  const Nanos at_once = std::max(travel / kNoticeable, std::min(kAtOnce, travel / kMaxAtOnce));
  return message.end - *came <= at_once;
}

/// Returns the end of a message that arrived before its rank waited for it: at most `usual` after
/// its start, the median of those that ranks waited for. If it started during the op that its rank
/// still ran, it ends with that op, which marks its time as unknown.
Nanos arrival(const Taken& message, std::optional<Nanos> usual) {
  if (message.receiver_free && *message.receiver_free > message.start)
    return *message.receiver_free;
  const Nanos bound = message.waited_from.value_or(message.end);
  return usual ? std::min(bound, message.start + *usual) : bound;
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
  std::vector<std::pair<InstructionId, Taken>> early;  // arrived before their ranks came for them
  std::vector<Nanos> travels;                          // of those that were waited for
  for (InstructionId id = 0; id < program.size(); ++id) {
    if (!is_message(program.instructions[id])) continue;
    const Nanos ready = timeline.end[program.dependencies_of(id).front()];
    const Nanos latest = std::max(ready, needed[id]);
    const ObservedEnds& ends = matching.ends_of(program.instructions[id].op);
    const std::optional<Nanos> posted = ends.posted ? ends.posted : ends.receive_start;
    const Nanos start = std::max({ready, ends.send_start.value_or(ready), posted.value_or(ready)});
    const Nanos end = ends.receive_end.value_or(ends.send_end.value_or(ready));
    timeline.start[id] = std::min(start, latest);
    timeline.end[id] = std::clamp(end, timeline.start[id], latest);
    if (!ends.is_taken_by_host) continue;
    const Taken message{timeline.start[id], timeline.end[id], free[id], ends.waited_from};
    if (had_arrived(message))
      early.emplace_back(id, message);
    else
      travels.push_back(message.end - message.start);
  }
  std::optional<Nanos> usual;
  if (!travels.empty()) usual = quantile(std::move(travels), 50);
  for (const auto& [id, message] : early) timeline.end[id] = arrival(message, usual);
  return timeline;
}

}  // namespace bubblescope::traces
