// Lowering of messages in the rank's own list: host-rendezvous, host-send and batched.
#include <cstdint>
#include <span>

#include "sim/ir/lower_messages.h"
#include "sim/ir/program_draft.h"

namespace bubblescope::inline sim {

namespace {

class HostLowering {
 public:
  HostLowering(const Program& dataflow, P2pMode mode)
      : dataflow_(dataflow),
        mode_(mode),
        send_wait_(dataflow.size()),
        receive_post_(dataflow.size()),
        draft_(dataflow) {}

  std::variant<Program, Deadlock> run(const std::vector<PostedSteps>& steps) && {
    for (std::int32_t rank = 0; rank < dataflow_.ranks; ++rank) add_list(rank, steps[rank]);
    if (mode_ == P2pMode::kHostSend) release_sends();
    return std::move(draft_).finish();
  }

 private:
  void add_list(std::int32_t rank, const PostedSteps& steps) {
    lane_ = draft_.add_lane({rank, kHostLane});
    last_compute_ = last_host_event_ = kNoInstruction;
    for (std::size_t at = 0; at < steps.size();) {
      if (is_compute(steps[at].op.kind)) {
        pass_compute(steps[at++].id);
        continue;
      }
      // The send before it has blocked the rank already.
      if (is_send_wait(steps[at].op.kind)) {
        ++at;
        continue;
      }
      const std::size_t end = end_of_group(steps, at);
      add_group(std::span(steps).subspan(at, end - at));
      at = end;
    }
  }

  std::size_t end_of_group(const PostedSteps& steps, std::size_t at) const {
    if (mode_ != P2pMode::kBatched) return at + 1;
    while (at < steps.size() && is_message(steps[at].op.kind)) ++at;
    return at;
  }

  /// The compute lane keeps the order of compute ops; only the op after messages must wait.
  void pass_compute(InstructionId id) {
    if (last_host_event_ != kNoInstruction) draft_.add_dependency(id, last_host_event_);
    last_host_event_ = kNoInstruction;
    last_compute_ = id;
  }

  void add_group(std::span<const PostedStep> group) {
    for (const PostedStep& step : group) add_post(step);
    for (const PostedStep& step : group)
      if (is_send(step.op.kind) || mode_ != P2pMode::kHostSend) add_wait(step);
  }

  void add_post(const PostedStep& step) {
    const InstructionId post = add(step, Role::kPost);
    if (last_compute_ != kNoInstruction) draft_.wait_for(last_compute_);
    last_compute_ = kNoInstruction;
    draft_.add_dependency(step.id, post);
    if (is_recv(step.op.kind)) receive_post_[step.id] = post;
  }

  void add_wait(const PostedStep& step) {
    const InstructionId wait = add(step, Role::kWait);
    if (mode_ == P2pMode::kHostSend)
      send_wait_[step.id] = wait;
    else
      draft_.wait_for(step.id);
  }

  InstructionId add(const PostedStep& step, Role role) {
    return last_host_event_ = draft_.add(make_message_end(step, dataflow_, lane_, role));
  }

  /// A send is complete once its receive is posted, however long the message is in transit.
  void release_sends() {
    for (InstructionId id = 0; id < dataflow_.size(); ++id)
      if (is_message(dataflow_.instructions[id]))
        draft_.add_dependency(send_wait_[id], receive_post_[id]);
  }

  const Program& dataflow_;
  P2pMode mode_;
  std::uint32_t lane_ = 0;
  InstructionId last_compute_ =
      kNoInstruction;  ///< before the next post, if nothing is between them
  InstructionId last_host_event_ = kNoInstruction;  ///< before the next compute op, likewise
  std::vector<InstructionId> send_wait_;            ///< by message
  std::vector<InstructionId> receive_post_;         ///< by message
  ProgramDraft draft_;
};

}  // namespace

std::variant<Program, Deadlock> lower_to_host(const Program& dataflow,
                                              const std::vector<PostedSteps>& steps, P2pMode mode) {
  return HostLowering(dataflow, mode).run(steps);
}

}  // namespace bubblescope::inline sim
