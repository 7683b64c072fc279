// Adds queues to a Program, and times them by the kernels that were observed.
#include "traces/measured/device_queues.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <utility>
#include <variant>

#include "sim/ir/depend.h"
#include "sim/ir/program_draft.h"
#include "traces/measured/time_span.h"

namespace bubblescope::traces {

namespace {

/// Rank, queue and kernel.
using KernelKey = std::tuple<std::int32_t, std::int64_t, std::optional<std::int64_t>>;

/// A kernel with the messages that it sends and receives, by their instructions.
struct Kernel {
  std::int32_t rank = 0;
  DevicePlace place;
  TimeSpan span;
  Nanos carries_from = 0;                       ///< when everything that it needs has started
  std::optional<InstructionId> op_before = {};  ///< the last op that was launched before it
  std::vector<InstructionId> sends = {};
  std::vector<InstructionId> receives = {};
};

/// The kernels at the two ends of a message, by their index.
struct KernelEnds {
  std::optional<std::size_t> sender, receiver;
};

/// The same for instructions of one Program, wherever they stand in it.
using InstructionKey = std::tuple<Role, std::int32_t, OpKind, std::int32_t, std::int32_t, int>;

InstructionKey key_of(const Instruction& one) {
  return {one.role, one.rank, one.op.kind, one.op.stage, one.op.microbatch, one.op.slice};
}

class QueueBuilder {
 public:
  explicit QueueBuilder(const ObservedQueues& observed)
      : observed_(observed),
        program_(observed.program),
        index_(observed.schedule),
        ends_(program_.size()),
        draft_(program_) {}

  std::optional<QueuedStep> build() && {
    if (!number_messages() || !launches_are_known() || !find_kernels()) return {};
    find_times();
    for (Kernel& kernel : kernels_) place(kernel);
    for (Kernel& kernel : kernels_) find_transfer(kernel);
    add_queues();
    for (InstructionId id = 0; id < program_.size(); ++id) connect(id);
    std::variant<Program, Deadlock> finished = std::move(draft_).finish();
    if (std::holds_alternative<Deadlock>(finished)) return {};
    return take_times(std::get<Program>(std::move(finished)));
  }

 private:
  /// Numbers messages by their values; false without messages, or where several carry one value.
  bool number_messages() {
    message_of_.assign(index_.size(), kNoInstruction);
    bool any = false;
    for (InstructionId id = 0; id < program_.size(); ++id) {
      if (!is_message(program_.instructions[id])) continue;
      const auto value = find_carried_value(observed_.schedule, program_.instructions[id].op);
      if (!value || message_of_[index_(*value)] != kNoInstruction) return false;
      message_of_[index_(*value)] = id;
      any = true;
    }
    return any;
  }

  bool launches_are_known() {
    ops_.resize(observed_.lanes.size());
    for (InstructionId id = 0; id < program_.size(); ++id)
      if (is_compute(program_.instructions[id].op.kind))
        ops_[static_cast<std::size_t>(program_.instructions[id].rank)].push_back(id);
    for (const std::vector<ObservedOp>& lane : observed_.lanes)
      for (const ObservedOp& op : lane)
        if (!op.device) return false;
    return true;
  }

  /// Whether every message has one kernel at each end.
  bool find_kernels() {
    std::map<KernelKey, Kernel> found;
    for (const ObservedOp& message : observed_.messages) {
      const auto value = find_carried_value(observed_.schedule, message.op);
      const InstructionId id = value ? message_of_[index_(*value)] : kNoInstruction;
      if (id == kNoInstruction || !message.device) continue;
      const Instruction& one = program_.instructions[id];
      const bool sends = is_send(message.op.kind);
      if (message.recorder != (sends ? one.rank : one.peer)) continue;
      const DevicePlace& place = *message.device;
      Kernel& kernel = found[{message.recorder, place.queue, place.kernel}];
      kernel.rank = message.recorder;
      kernel.place = place;
      kernel.span = {message.start, message.end};
      (sends ? kernel.sends : kernel.receives).push_back(id);
    }
    for (auto& [_, kernel] : found) kernels_.push_back(std::move(kernel));
    std::stable_sort(kernels_.begin(), kernels_.end(), [](const Kernel& left, const Kernel& right) {
      return std::tie(left.rank, left.place.queue, left.span.start) <
             std::tie(right.rank, right.place.queue, right.span.start);
    });
    return join_ends();
  }

  bool join_ends() {
    for (std::size_t at = 0; at < kernels_.size(); ++at) {
      for (const InstructionId id : kernels_[at].sends)
        if (!take_end(ends_[id].sender, at)) return false;
      for (const InstructionId id : kernels_[at].receives)
        if (!take_end(ends_[id].receiver, at)) return false;
    }
    for (const InstructionId id : message_of_)
      if (id != kNoInstruction && (!ends_[id].sender || !ends_[id].receiver)) return false;
    return true;
  }

  static bool take_end(std::optional<std::size_t>& end, std::size_t kernel) {
    if (end) return false;
    end = kernel;
    return true;
  }

  /// Returns the last op of a kernel's rank that was launched before it.
  std::optional<InstructionId> find_op_before(const Kernel& kernel) const {
    const auto rank = static_cast<std::size_t>(kernel.rank);
    const std::vector<ObservedOp>& lane = observed_.lanes[rank];
    for (std::size_t at = lane.size(); at > 0; --at)
      if (lane[at - 1].device->launched < kernel.place.launched) return ops_[rank][at - 1];
    return {};
  }

  /// When the first op that needs a message starts, and from when to when ops run.
  void find_times() {
    consumer_starts_.assign(program_.size(), std::numeric_limits<Nanos>::max());
    extent_ = {std::numeric_limits<Nanos>::max(), std::numeric_limits<Nanos>::min()};
    for (InstructionId id = 0; id < program_.size(); ++id) {
      const TimeSpan span{observed_.timeline.start[id], observed_.timeline.end[id]};
      if (is_compute(program_.instructions[id].op.kind)) widen(extent_, span);
      for (const InstructionId needed : program_.dependencies_of(id))
        consumer_starts_[needed] = std::min(consumer_starts_[needed], span.start);
    }
  }

  /// Keeps a kernel after what it waited for and before what waited for it, as clocks are inexact.
  /// A step lasts from its first op to its last: what a kernel waits beside that is not in it.
  void place(Kernel& kernel) {
    Nanos start = std::clamp(kernel.span.start, extent_.start, extent_.end);
    Nanos end = std::min(kernel.span.end, extent_.end);
    kernel.op_before = find_op_before(kernel);
    if (kernel.op_before) start = std::max(start, observed_.timeline.end[*kernel.op_before]);
    const auto at = static_cast<std::size_t>(&kernel - kernels_.data());
    if (at > 0 && is_behind(kernels_[at - 1], kernel))
      start = std::max(start, kernels_[at - 1].span.end);
    for (const InstructionId message : kernel.receives)
      end = std::min(end, consumer_starts_[message]);
    kernel.span = {start, std::max(start, end)};
  }

  static bool is_behind(const Kernel& before, const Kernel& kernel) {
    return before.rank == kernel.rank && before.place.queue == kernel.place.queue;
  }

  bool needs_receiver(const Kernel& kernel, InstructionId sent) const {
    return kernels_[*ends_[sent].receiver].span.start < kernel.span.end;
  }

  void find_transfer(Kernel& kernel) const {
    Nanos from = kernel.span.start;
    for (const InstructionId id : kernel.receives)
      from = std::max(from, kernels_[*ends_[id].sender].span.start);
    for (const InstructionId id : kernel.sends)
      if (needs_receiver(kernel, id))
        from = std::max(from, kernels_[*ends_[id].receiver].span.start);
    kernel.carries_from = std::min(from, kernel.span.end);
  }

  void add_queues() {
    send_post_.assign(program_.size(), kNoInstruction);
    receive_post_.assign(program_.size(), kNoInstruction);
    receive_wait_.assign(program_.size(), kNoInstruction);
    const Kernel* before = nullptr;
    std::uint32_t lane = 0;
    for (const Kernel& kernel : kernels_) {
      if (!before || !is_behind(*before, kernel))
        lane = draft_.add_lane({kernel.rank, "communication"});
      before = &kernel;
      add_posts(kernel, lane);
      add_waits(kernel, lane);
    }
    for (const Kernel& kernel : kernels_) wait_for_receivers(kernel);
  }

  InstructionId add_end(InstructionId message, bool sends, std::uint32_t lane, Role role,
                        const TimeSpan& span) {
    const Instruction& one = program_.instructions[message];
    Instruction end = one;
    if (!sends) {
      const Value value = *find_carried_value(observed_.schedule, one.op);
      const std::int32_t to = *receiving_stage(observed_.schedule, value);
      end.op = make_receive(observed_.schedule, value, to);
      std::swap(end.rank, end.peer);
    }
    end.lane = lane;
    end.role = role;
    times_[key_of(end)] = span;
    return draft_.add(end);
  }

  void add_posts(const Kernel& kernel, std::uint32_t lane) {
    const TimeSpan start{kernel.span.start, kernel.span.start};
    for (const InstructionId id : kernel.sends) {
      send_post_[id] = add_end(id, true, lane, Role::kPost, start);
      for (const InstructionId producer : program_.dependencies_of(id)) draft_.wait_for(producer);
      if (kernel.op_before) draft_.wait_for(*kernel.op_before);
    }
    for (const InstructionId id : kernel.receives) {
      receive_post_[id] = add_end(id, false, lane, Role::kPost, start);
      if (kernel.op_before) draft_.wait_for(*kernel.op_before);
    }
  }

  /// All sends of a kernel are done together.
  void add_waits(const Kernel& kernel, std::uint32_t lane) {
    if (!kernel.sends.empty())
      add_end(kernel.sends.front(), true, lane, Role::kWait,
              {kernel.carries_from, kernel.span.end});
    for (const InstructionId id : kernel.receives) {
      receive_wait_[id] = add_end(id, false, lane, Role::kWait, {kernel.span.end, kernel.span.end});
      draft_.wait_for(id);
      times_[key_of(program_.instructions[id])] = {kernel.carries_from, kernel.span.end};
    }
  }

  /// The wait for a kernel's sends follows the last of their posts.
  void wait_for_receivers(const Kernel& kernel) {
    if (kernel.sends.empty()) return;
    const auto behind = static_cast<InstructionId>(kernel.sends.size() + kernel.receives.size());
    const InstructionId wait = send_post_[kernel.sends.front()] + behind;
    for (const InstructionId id : kernel.sends)
      if (needs_receiver(kernel, id)) draft_.add_dependency(wait, receive_post_[id]);
  }

  /// A message leaves when both ends are posted; its consumers wait for the receiving kernel.
  void connect(InstructionId id) {
    if (is_message(program_.instructions[id])) {
      draft_.add_dependency(id, send_post_[id]);
      draft_.add_dependency(id, receive_post_[id]);
    }
    for (const InstructionId needed : program_.dependencies_of(id))
      if (is_message(program_.instructions[needed]))
        draft_.add_dependency(id, receive_wait_[needed]);
  }

  QueuedStep take_times(Program program) {
    for (InstructionId id = 0; id < program_.size(); ++id)
      times_.try_emplace(key_of(program_.instructions[id]),
                         TimeSpan{observed_.timeline.start[id], observed_.timeline.end[id]});
    QueuedStep step{std::move(program), observed_.timeline};
    step.timeline.start.resize(step.program.size());
    step.timeline.end.resize(step.program.size());
    for (InstructionId id = 0; id < step.program.size(); ++id) {
      const TimeSpan& span = times_.at(key_of(step.program.instructions[id]));
      step.timeline.start[id] = span.start;
      step.timeline.end[id] = span.end;
    }
    return step;
  }

  const ObservedQueues& observed_;
  const Program& program_;
  ValueIndex index_;
  std::vector<InstructionId> message_of_;        ///< by value
  std::vector<std::vector<InstructionId>> ops_;  ///< [rank], in order
  std::vector<Kernel> kernels_;                  ///< by rank, queue and start
  std::vector<KernelEnds> ends_;                 ///< by message
  std::vector<Nanos> consumer_starts_;           ///< by message
  TimeSpan extent_;                              ///< of all ops
  std::vector<InstructionId> send_post_, receive_post_, receive_wait_;  ///< by message
  std::map<InstructionKey, TimeSpan> times_;
  ProgramDraft draft_;
};

}  // namespace

std::optional<QueuedStep> queue_messages(const ObservedQueues& observed) {
  return QueueBuilder(observed).build();
}

}  // namespace bubblescope::traces
