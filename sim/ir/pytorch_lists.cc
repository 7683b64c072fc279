// Follows PyTorch's lowering, pass by pass.
#include "sim/ir/pytorch_lists.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "sim/ir/defer_receives.h"
#include "sim/ir/lower_collectives.h"
#include "sim/ir/op_kinds.h"
#include "sim/ir/post_messages.h"
#include "sim/ir/posted_kinds.h"
#include "sim/ir/send_budget.h"
#include "sim/ir/shard_stages.h"

namespace bubblescope::inline sim {

namespace {

std::vector<RankOrder> without_waits(std::vector<RankOrder> lists) {
  for (RankOrder& list : lists) std::erase_if(list, [](const Op& op) { return is_wait(op.kind); });
  return lists;
}

/// Adds what the releases since 2.15 need to lists with messages: the reductions by which the
/// runtime scales gradients, unless there are some, and all waits.
std::vector<RankOrder> with_waits(const Schedule& schedule, std::vector<RankOrder> lists) {
  const bool adds_reductions = reduces_by_rank(schedule) && !has_kind(lists, OpKind::kReduceGrad);
  const bool adds_reduction_waits = !has_kind(lists, OpKind::kWaitReduceGrad);
  for (RankOrder& list : lists) {
    if (adds_reductions) list = add_reductions(list);
    if (adds_reduction_waits) list = add_reduction_waits(list);
    list = add_send_waits(list);
  }
  return lists;
}

/// Reductions and their waits, which take turns when messages are placed. Idle cells take none
/// here: PyTorch drops them before.
std::vector<RankOrder> add_reduction_cells(const Schedule& schedule) {
  std::vector<RankOrder> lists = schedule.posted.empty() ? schedule.order : schedule.posted;
  const bool adds_reductions = reduces_by_rank(schedule) && !has_kind(lists, OpKind::kReduceGrad);
  const bool waits = has_kind(lists, OpKind::kWaitReduceGrad);
  for (RankOrder& list : lists) {
    std::erase_if(list, [](const Op& op) { return op.kind == OpKind::kIdle; });
    if (adds_reductions) list = add_reductions(list);
    if (!waits) list = add_reduction_waits(list);
  }
  return lists;
}

/// Places the waits for forward sends, and collects the other waits for the end.
class SendWaits {
 public:
  RankOrder run(const RankOrder& list) && {
    for (std::size_t at = 0; at < list.size(); ++at) {
      const Op& op = list[at];
      waiting_.push_back(op);
      if (is_send(op.kind)) note(op);
      if (op.pairing == Pairing::kFirst) continue;
      if (op.pairing == Pairing::kSecond) add_wait_behind(list[at - 1]);
      add_wait_behind(op);
    }
    for (const auto& send : sent_)
      if (send) waiting_.push_back(make_send_wait(*send));
    return std::move(waiting_);
  }

 private:
  void note(const Op& send) {
    if (send.kind == OpKind::kSendForward)
      forward_[{send.stage, send.microbatch, send.slice}] = sent_.size();
    sent_.emplace_back(send);
  }

  void add_wait_behind(const Op& op) {
    if (!gives_input_grad(op.kind)) return;
    const auto sent = forward_.find({op.stage, op.microbatch, op.slice});
    if (sent == forward_.end()) return;
    waiting_.push_back(make_send_wait(*std::exchange(sent_[sent->second], std::nullopt)));
    forward_.erase(sent);
  }

  RankOrder waiting_;
  std::vector<std::optional<Op>> sent_;  ///< in posted order; empty once waited for
  /// Maps stage, micro-batch and slice to the index of their SEND_F in `sent_`.
  std::map<std::tuple<std::int32_t, std::int32_t, std::int16_t>, std::size_t> forward_;
};

}  // namespace

ValidSchedule take_turns_of_215(ValidSchedule given) {
  if (posts_messages(given)) return given;
  const bool keeps_reductions = posts_collectives(given);
  Schedule schedule = std::move(given).take();
  const bool keeps_waits = has_kind(schedule.posted, OpKind::kWaitReduceGrad);
  schedule.posted = add_reduction_cells(schedule);
  const auto is_turn_alone = [&](const Op& op) {
    return (op.kind == OpKind::kReduceGrad && !keeps_reductions) ||
           (op.kind == OpKind::kWaitReduceGrad && !keeps_waits);
  };
  for (RankOrder& cells : schedule.posted)
    std::replace_if(cells.begin(), cells.end(), is_turn_alone, Op{0, 0, 0, OpKind::kIdle});
  return require_valid(std::move(schedule));
}

RankOrder add_send_waits(const RankOrder& list) { return SendWaits().run(list); }

RankOrder add_reduction_waits(const RankOrder& list) {
  RankOrder waiting;
  for (const Op& op : list) {
    waiting.push_back(op);
    if (op.kind != OpKind::kReduceGrad) continue;
    waiting.push_back(op);
    waiting.back().kind = OpKind::kWaitReduceGrad;
  }
  return waiting;
}

namespace {

std::vector<RankOrder> make_unlimited_lists(const ValidSchedule& schedule,
                                            const PytorchListOptions& options) {
  const bool current = options.release == PytorchRelease::kFrom215;
  if (!current) return without_waits(make_posted_lists(schedule, options.posting));
  if (posts_messages(schedule) && posts_waits(schedule)) return schedule->posted;
  const bool take_turns = options.reductions_take_turns || posts_collectives(schedule);
  if (posts_messages(schedule) || !take_turns)
    return with_waits(schedule, make_posted_lists(schedule, options.posting));
  Schedule cells = schedule;
  cells.posted = add_reduction_cells(schedule);
  std::vector<RankOrder> lists = post_messages(require_valid(std::move(cells)));
  for (RankOrder& list : lists) list = add_send_waits(list);
  return options.posting == ReceivePosting::kDeferred ? defer_receives(schedule, lists) : lists;
}

}  // namespace

std::vector<RankOrder> make_pytorch_lists(const ValidSchedule& schedule,
                                          const PytorchListOptions& options) {
  std::vector<RankOrder> lists = make_unlimited_lists(schedule, options);
  const bool waits = options.release == PytorchRelease::kFrom215;
  return waits && options.send_budget ? limit_sends(schedule, lists, *options.send_budget) : lists;
}

}  // namespace bubblescope::inline sim
