// Lowering to separate communication queues: fifo, eager and rendezvous.
#include <cstdint>
#include <map>
#include <utility>

#include "sim/ir/lower_messages.h"
#include "sim/ir/program_draft.h"

namespace bubblescope::inline sim {

namespace {

/// The messages from one rank to another, in the order of their posted sends and receives.
struct Channel {
  std::vector<InstructionId> sends;
  std::vector<InstructionId> receives;
};

class QueueLowering {
 public:
  QueueLowering(const Program& dataflow, Slots slots)
      : dataflow_(dataflow),
        slots_(slots),
        send_post_(dataflow.size()),
        receive_post_(dataflow.size()),
        receive_wait_(dataflow.size()),
        place_of_receive_(dataflow.size()),
        draft_(dataflow) {}

  std::variant<Program, Deadlock> run(const std::vector<PostedSteps>& steps) && {
    for (std::int32_t rank = 0; rank < dataflow_.ranks; ++rank) add_queue(rank, steps[rank]);
    for (InstructionId id = 0; id < dataflow_.size(); ++id) connect(id);
    if (slots_)
      for (const auto& [ends, channel] : channels_) limit(channel);
    return std::move(draft_).finish();
  }

 private:
  void add_queue(std::int32_t rank, const PostedSteps& steps) {
    const std::uint32_t lane = draft_.add_lane({rank, "communication"});
    waited_by_post_.clear();
    waited_by_compute_.clear();
    for (const PostedStep& step : steps) {
      if (is_send(step.op.kind))
        add_send(step, lane);
      else if (is_recv(step.op.kind))
        add_receive(step, lane);
      else if (is_send_wait(step.op.kind))
        add_send_wait(step);
      else
        pass_compute(step.id);
    }
  }

  /// A WAIT_SEND blocks the rank in both lanes until its send is done. A send with a slot is done
  /// at once, one without slots when its message has arrived.
  void add_send_wait(const PostedStep& step) {
    const InstructionId done = slots_ == 0 ? step.id : send_post_[step.id];
    waited_by_post_.push_back(done);
    waited_by_compute_.push_back(done);
  }

  void pass_compute(InstructionId id) {
    for (const InstructionId done : waited_by_compute_) draft_.add_dependency(id, done);
    waited_by_compute_.clear();
  }

  /// Call this directly after adding a post.
  void wait_for_sends() {
    for (const InstructionId done : waited_by_post_) draft_.wait_for(done);
    waited_by_post_.clear();
  }

  void add_send(const PostedStep& step, std::uint32_t lane) {
    send_post_[step.id] = draft_.add(make_message_end(step, dataflow_, lane, Role::kPost));
    wait_for_sends();
    for (const InstructionId producer : dataflow_.dependencies_of(step.id))
      draft_.wait_for(producer);
    channel_of(step.id).sends.push_back(step.id);
  }

  void add_receive(const PostedStep& step, std::uint32_t lane) {
    receive_post_[step.id] = draft_.add(make_message_end(step, dataflow_, lane, Role::kPost));
    wait_for_sends();
    receive_wait_[step.id] = draft_.add(make_message_end(step, dataflow_, lane, Role::kWait));
    draft_.wait_for(step.id);
    std::vector<InstructionId>& receives = channel_of(step.id).receives;
    place_of_receive_[step.id] = receives.size();
    receives.push_back(step.id);
  }

  Channel& channel_of(InstructionId message) {
    const Instruction& instruction = dataflow_.instructions[message];
    return channels_[{instruction.rank, instruction.peer}];
  }

  /// A message leaves with its send; every consumer waits for its receive.
  void connect(InstructionId id) {
    if (is_message(dataflow_.instructions[id])) draft_.add_dependency(id, send_post_[id]);
    for (const InstructionId needed : dataflow_.dependencies_of(id))
      if (is_message(dataflow_.instructions[needed]))
        draft_.add_dependency(id, receive_wait_[needed]);
  }

  /// Send n finds a slot when n - slots + 1 messages have been received; otherwise it proceeds when
  /// its own receive is posted. Receives have a fixed order, so it is known which of the two
  /// happens first.
  void limit(const Channel& channel) {
    const auto slots = static_cast<std::size_t>(*slots_);
    for (std::size_t at = slots; at < channel.sends.size(); ++at) {
      const InstructionId message = channel.sends[at];
      const std::size_t freeing = at - slots;
      const bool direct = slots == 0 || place_of_receive_[message] <= freeing;
      draft_.add_dependency(send_post_[message], direct ? receive_post_[message]
                                                        : receive_wait_[channel.receives[freeing]]);
    }
  }

  const Program& dataflow_;
  Slots slots_;
  std::vector<InstructionId> send_post_;          ///< by message
  std::vector<InstructionId> receive_post_;       ///< by message
  std::vector<InstructionId> receive_wait_;       ///< by message
  std::vector<std::size_t> place_of_receive_;     ///< by message, within its channel
  std::vector<InstructionId> waited_by_post_;     ///< sends that the rank's next post waits for
  std::vector<InstructionId> waited_by_compute_;  ///< sends that its next compute op waits for
  std::map<std::pair<std::int32_t, std::int32_t>, Channel> channels_;  ///< by source, destination
  ProgramDraft draft_;
};

}  // namespace

std::variant<Program, Deadlock> lower_to_queues(const Program& dataflow,
                                                const std::vector<PostedSteps>& steps,
                                                Slots slots) {
  return QueueLowering(dataflow, slots).run(steps);
}

}  // namespace bubblescope::inline sim
