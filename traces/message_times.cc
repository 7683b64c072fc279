// Matches the two ends of every message, and fits it between its producer and its consumer.
#include "traces/message_times.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "sim/ir/depend.h"

namespace bubblescope {

namespace {

/// The two ends of one message, as far as they were observed.
struct Ends {
  std::optional<Nanos> send_start, send_end;
  std::optional<Nanos> receive_start, receive_end;
};

bool wants_forward(OpKind message) {
  return message == OpKind::kSendForward || message == OpKind::kRecvForward;
}

/// The values that messages of one kind carry from or to one rank, one per op of the matching
/// direction, in the rank's order; nullopt for ops whose value stays on the rank.
std::vector<std::optional<Made>> products_in_order(const Schedule& schedule, std::int32_t rank,
                                                   OpKind message) {
  std::vector<std::optional<Made>> products;
  for (const Op& op : schedule.order[rank]) {
    const bool matches =
        wants_forward(message) ? op.kind == OpKind::kForward : gives_input_grad(op.kind);
    if (!matches) continue;
    Op end = op;
    end.kind = message;
    std::optional<Made> made = carried_by(schedule, end);
    if (made) {
      const std::int32_t to = receiving_stage(schedule, *made).value_or(made->stage);
      if (schedule.rank_of(made->stage, made->microbatch) == schedule.rank_of(to, made->microbatch))
        made.reset();
    }
    products.push_back(made);
  }
  return products;
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
      else if (const std::optional<Made> made = carried_by(schedule_, message.op))
        add(*made, message);
    }
    for (const auto& [place, list] : unnumbered)
      deal(products_in_order(schedule_, place.first, place.second), list);
  }

  const Ends& ends_of(const Op& message) const {
    static const Ends nobody;
    const std::optional<Made> made = carried_by(schedule_, message);
    return made ? ends_[index_(*made)] : nobody;
  }

 private:
  /// Some runtimes record messages that were never sent, one per op; those are skipped.
  void deal(std::vector<std::optional<Made>> products, const std::vector<ObservedOp>& list) {
    if (products.size() != list.size()) std::erase(products, std::nullopt);
    if (products.size() != list.size()) return;
    for (std::size_t at = 0; at < list.size(); ++at)
      if (products[at]) add(*products[at], list[at]);
  }

  void add(const Made& made, const ObservedOp& message) {
    Ends& ends = ends_[index_(made)];
    if (is_send(message.op.kind)) {
      ends.send_start = message.start;
      ends.send_end = message.end;
    } else {
      // It may be recorded twice: where it was posted, and where it was waited for.
      ends.receive_start = std::min(ends.receive_start.value_or(message.start), message.start);
      ends.receive_end = std::max(ends.receive_end.value_or(message.end), message.end);
    }
  }

  const Schedule& schedule_;
  MadeIndex index_;
  std::vector<Ends> ends_;
};

}  // namespace

void time_messages(const Schedule& schedule, const Program& program,
                   std::vector<ObservedOp> messages, Timeline& timeline) {
  Matching matching(schedule);
  matching.add_all(std::move(messages));
  std::vector<Nanos> needed(program.size(), std::numeric_limits<Nanos>::max());
  for (InstructionId id = 0; id < program.size(); ++id)
    if (!is_message(program.instructions[id]))
      for (const InstructionId awaited : program.dependencies_of(id))
        needed[awaited] = std::min(needed[awaited], timeline.start[id]);
  for (InstructionId id = 0; id < program.size(); ++id) {
    if (!is_message(program.instructions[id])) continue;
    const Nanos ready = timeline.end[program.dependencies_of(id).front()];
    const Nanos latest = std::max(ready, needed[id]);
    const Ends& ends = matching.ends_of(program.instructions[id].op);
    const Nanos start =
        std::max({ready, ends.send_start.value_or(ready), ends.receive_start.value_or(ready)});
    const Nanos end = ends.receive_end.value_or(ends.send_end.value_or(ready));
    timeline.start[id] = std::min(start, latest);
    timeline.end[id] = std::clamp(end, timeline.start[id], latest);
  }
}

}  // namespace bubblescope
