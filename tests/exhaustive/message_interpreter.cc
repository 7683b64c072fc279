// Time advances in steps of one; in each step everything that can move is moved.
#include "tests/exhaustive/message_interpreter.h"

#include <algorithm>
#include <set>
#include <vector>

#include "sim/ir/depend.h"
#include "tests/support/as_written.h"

namespace bubblescope::tests {

namespace {

struct Message {
  std::int32_t from = 0;
  std::int32_t to = 0;
  std::optional<Nanos> send_posted;
  std::optional<Nanos> receive_posted;
  std::optional<Nanos> left;
  bool received = false;
};

/// An in-order queue of cells. With separate queues a rank has two, else one.
struct Queue {
  RankOrder cells;
  std::size_t head = 0;
  std::optional<Nanos> busy_until;

  bool empty() const { return head == cells.size(); }
};

class Interpreter {
 public:
  Interpreter(const Schedule& schedule, const LowerOptions& options, const CostModel& costs)
      : schedule_(schedule), options_(options), costs_(costs) {
    const P2pMode mode = options.mode;
    separate_ = mode == P2pMode::kFifo || mode == P2pMode::kEager || mode == P2pMode::kRendezvous;
    for (const RankOrder& list : make_posted_lists(schedule, options.posting)) add_rank(list);
  }

  Starts run() {
    while (!done()) {
      while (move_all()) {
      }
      if (done()) break;
      if (!anything_under_way()) return std::nullopt;
      ++now_;
    }
    return starts_;
  }

 private:
  void add_rank(const RankOrder& list) {
    Queue computes;
    Queue messages;
    for (const Op& op : list)
      if (!is_send_wait(op.kind))
        (separate_ && is_message(op.kind) ? messages : computes).cells.push_back(op);
    queues_.push_back(computes);
    if (separate_) queues_.push_back(messages);
  }

  bool done() const {
    return std::all_of(queues_.begin(), queues_.end(), [](const Queue& q) { return q.empty(); });
  }

  bool move_all() {
    bool moved = false;
    for (Queue& queue : queues_)
      if (!queue.empty() && move(queue)) moved = true;
    return moved;
  }

  bool anything_under_way() const {
    for (const Queue& queue : queues_)
      if (queue.busy_until && *queue.busy_until > now_) return true;
    for (const auto& [key, message] : messages_)
      if (message.left && arrival(message) > now_) return true;
    return false;
  }

  bool move(Queue& queue) {
    const Op& op = queue.cells[queue.head];
    if (is_compute(op.kind)) return move_compute(queue, op);
    if (separate_) return is_send(op.kind) ? move_send(queue, op) : move_receive(queue, op);
    if (options_.mode == P2pMode::kHostSend) return move_host_send(queue, op);
    return move_group(queue);
  }

  bool move_compute(Queue& queue, const Op& op) {
    if (!queue.busy_until) {
      if (!ready(op)) return false;
      starts_[to_string(op)] = now_;
      queue.busy_until = now_ + duration(op);
      return true;
    }
    if (*queue.busy_until > now_) return false;
    for (const Value& value : value_of(op)) ended_.insert(key(value));
    queue.busy_until.reset();
    ++queue.head;
    return true;
  }

  bool move_send(Queue& queue, const Op& op) {
    Message& message = message_of(op);
    if (!ended_.contains(key(*find_carried_value(schedule_, op)))) return false;
    if (!has_slot(message) && !receive_at_head(message, op)) return false;
    message.left = now_;
    ++queue.head;
    return true;
  }

  bool has_slot(const Message& message) const {
    if (options_.mode == P2pMode::kFifo) return true;
    int held = 0;
    for (const auto& [key, other] : messages_)
      if (other.from == message.from && other.to == message.to && other.left && !other.received)
        ++held;
    return held < (options_.mode == P2pMode::kRendezvous ? 0 : options_.eager_slots);
  }

  bool receive_at_head(const Message& message, const Op& send) const {
    const Queue& peer = queues_[static_cast<std::size_t>(2 * message.to + 1)];
    if (peer.empty() || !is_recv(peer.cells[peer.head].kind)) return false;
    return key(*find_carried_value(schedule_, peer.cells[peer.head])) ==
           key(*find_carried_value(schedule_, send));
  }

  bool move_receive(Queue& queue, const Op& op) {
    Message& message = message_of(op);
    if (!message.left || arrival(message) > now_) return false;
    message.received = true;
    ++queue.head;
    return true;
  }

  bool move_host_send(Queue& queue, const Op& op) {
    Message& message = message_of(op);
    const bool first = !posted(message, op);
    if (first) post(op);
    if (is_send(op.kind) && !message.left) return first;
    ++queue.head;
    return true;
  }

  /// Moves one message or, under kBatched, all messages up to the next compute op.
  bool move_group(Queue& queue) {
    std::size_t end = queue.head + 1;
    while (options_.mode == P2pMode::kBatched && end < queue.cells.size() &&
           is_message(queue.cells[end].kind))
      ++end;
    bool moved = false;
    bool complete = true;
    for (std::size_t at = queue.head; at < end; ++at) {
      Message& message = message_of(queue.cells[at]);
      if (!posted(message, queue.cells[at])) {
        post(queue.cells[at]);
        moved = true;
      }
      complete = complete && message.left && arrival(message) <= now_;
    }
    if (complete) queue.head = end;
    return moved || complete;
  }

  static bool posted(const Message& message, const Op& op) {
    return is_send(op.kind) ? message.send_posted.has_value() : message.receive_posted.has_value();
  }

  void post(const Op& op) {
    Message& message = message_of(op);
    (is_send(op.kind) ? message.send_posted : message.receive_posted) = now_;
    if (message.send_posted && message.receive_posted) message.left = now_;
  }

  bool ready(const Op& op) {
    for (const Value& value : collect_needs(schedule_, op)) {
      const std::int32_t from = schedule_.rank_of_stage[value.stage];
      const std::int32_t to = schedule_.rank_of_stage[op.stage];
      if (from == to) {
        if (!ended_.contains(key(value))) return false;
        continue;
      }
      const Message& message = messages_[key(value)];
      const bool there = message.left && arrival(message) <= now_;
      if (separate_ ? !message.received : !there) return false;
    }
    return true;
  }

  static std::vector<Value> value_of(const Op& op) {
    return {{value_kind_of(op.kind), op.stage, op.microbatch, op.slice}};
  }

  using Key = std::vector<std::int32_t>;
  static Key key(const Value& value) {
    return {static_cast<std::int32_t>(value.value_kind), value.stage, value.microbatch,
            value.slice};
  }

  Message& message_of(const Op& op) {
    const Value value = *find_carried_value(schedule_, op);
    Message& message = messages_[key(value)];
    message.from = schedule_.rank_of_stage[value.stage];
    message.to = schedule_.rank_of_stage[*receiving_stage(schedule_, value)];
    return message;
  }

  Nanos arrival(const Message& message) const { return *message.left + costs_.message; }
  Nanos duration(const Op& op) const {
    const StageCost& cost = costs_.stage_cost(op);
    if (op.kind == OpKind::kForward) return cost.forward;
    if (op.kind == OpKind::kBackward) return cost.backward;
    return op.kind == OpKind::kInputGrad ? cost.input_grad : cost.weight_grad;
  }

  const Schedule& schedule_;
  const LowerOptions& options_;
  const CostModel& costs_;
  bool separate_ = false;
  std::vector<Queue> queues_;
  std::map<Key, Message> messages_;
  std::set<Key> ended_;
  std::map<std::string, Nanos> starts_;
  Nanos now_ = 0;
};

}  // namespace

Starts interpret(const Schedule& schedule, const LowerOptions& options, const CostModel& costs) {
  return Interpreter(schedule, options, costs).run();
}

}  // namespace bubblescope::tests
