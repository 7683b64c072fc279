// Makes instructions of the waits for sends, one rank's list after another's.
#include "sim/ir/lower_send_waits.h"

#include <utility>

#include "sim/ir/depend.h"
#include "sim/ir/posted_steps.h"
#include "sim/ir/program_draft.h"

namespace bubblescope::inline sim {

namespace {

/// Whether a rank posts and waits in the list of its compute ops.
bool has_host_list(P2pMode mode) {
  return mode == P2pMode::kHostRendezvous || mode == P2pMode::kHostSend ||
         mode == P2pMode::kBatched;
}

/// The instruction of a message after which its send is done: a copy in a slot is made by the post.
Role choose_end_of_send(const LowerOptions& options) {
  if (has_host_list(options.mode)) return Role::kWait;
  const bool slots = options.mode == P2pMode::kFifo ||
                     (options.mode == P2pMode::kEager && options.eager_slots > 0);
  return slots ? Role::kPost : Role::kWork;
}

class SendWaitLowering {
 public:
  SendWaitLowering(const Schedule& schedule, const Program& program, const LowerOptions& options)
      : program_(program),
        blocks_here_(options.mode == P2pMode::kDataflow),
        host_list_(has_host_list(options.mode)),
        schedule_(schedule),
        index_(schedule),
        done_(index_.size(), kNoInstruction),
        received_(index_.size(), kNoInstruction),
        draft_(program) {
    const Role end_of_send = choose_end_of_send(options);
    for (InstructionId id = 0; id < program.size(); ++id) {
      const Instruction& instruction = program.instructions[id];
      if (is_send(instruction.op.kind) && instruction.role == end_of_send)
        done_[message_of(instruction.op)] = id;
      if (is_recv(instruction.op.kind)) received_[message_of(instruction.op)] = id;
    }
  }

  std::variant<Program, Deadlock> run(const std::vector<PostedSteps>& steps) && {
    for (std::int32_t rank = 0; rank < program_.ranks; ++rank)
      add_rank(rank, steps[static_cast<std::size_t>(rank)]);
    return std::move(draft_).finish();
  }

 private:
  std::size_t message_of(const Op& op) const { return index_(*find_carried_value(schedule_, op)); }

  void add_rank(std::int32_t rank, const PostedSteps& steps) {
    last_compute_ = last_host_event_ = kNoInstruction;
    awaited_by_send_.clear();
    awaited_by_compute_.clear();
    for (const PostedStep& step : steps) {
      if (is_send_wait(step.op.kind)) {
        add_wait(rank, step);
      } else if (is_compute(step.op.kind)) {
        last_compute_ = step.id;
        make_wait(step.id, awaited_by_compute_);
      } else {
        if (is_send(step.op.kind)) make_wait(step.id, awaited_by_send_);
        if (host_list_) last_host_event_ = end_of(step);
      }
    }
  }

  InstructionId end_of(const PostedStep& step) const {
    return (is_send(step.op.kind) ? done_ : received_)[message_of(step.op)];
  }

  void add_wait(std::int32_t rank, const PostedStep& step) {
    const InstructionId done = done_[message_of(step.op)];
    draft_.add({step.op, kNoLane, rank, rank, Role::kWait});
    for (const InstructionId before : {done, last_compute_, last_host_event_})
      if (before != kNoInstruction) draft_.wait_for(before);
    if (!blocks_here_) return;
    awaited_by_send_.push_back(done);
    awaited_by_compute_.push_back(done);
  }

  void make_wait(InstructionId waiter, std::vector<InstructionId>& awaited) {
    for (const InstructionId done : awaited) draft_.add_dependency(waiter, done);
    awaited.clear();
  }

  const Program& program_;
  bool blocks_here_;
  bool host_list_;
  const Schedule& schedule_;
  ValueIndex index_;
  std::vector<InstructionId> done_;      ///< by message: after which its send is done
  std::vector<InstructionId> received_;  ///< by message: the last of its receive
  InstructionId last_compute_ = kNoInstruction;
  InstructionId last_host_event_ = kNoInstruction;
  std::vector<InstructionId> awaited_by_send_;
  std::vector<InstructionId> awaited_by_compute_;
  ProgramDraft draft_;
};

}  // namespace

std::variant<Program, Deadlock> lower_send_waits(const ValidSchedule& schedule,
                                                 const Program& program,
                                                 const std::vector<RankOrder>& lists,
                                                 const LowerOptions& options) {
  const std::vector<PostedSteps> steps = find_steps(schedule, program, lists);
  return SendWaitLowering(schedule, program, options).run(steps);
}

}  // namespace bubblescope::inline sim
