// Follows PyTorch's lowering, pass by pass.
#include "sim/ir/pytorch_lists.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "sim/ir/defer_receives.h"
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

/// The lists of an older release, which scales gradients where it finds no reductions.
std::vector<RankOrder> with_waits(const Schedule& schedule) {
  std::vector<RankOrder> lists = schedule.posted;
  const bool adds_reductions = reduces_by_rank(schedule) && !has_kind(lists, OpKind::kReduceGrad);
  for (RankOrder& list : lists) {
    if (adds_reductions) list = add_reductions(list);
    list = add_send_waits(add_reduction_waits(list));
  }
  return lists;
}

/// Each cell takes a turn when messages are placed, so reductions and their waits are added first.
/// Idle cells take no turn: PyTorch drops them before.
std::vector<RankOrder> cells_since_2_15(const Schedule& schedule) {
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

std::vector<RankOrder> defer_if(bool deferred, const ValidSchedule& schedule,
                                std::vector<RankOrder> lists) {
  return deferred ? defer_receives(schedule, lists) : lists;
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
  /// The index in `sent_` of the SEND_F of a stage, micro-batch and slice.
  std::map<std::tuple<std::int32_t, std::int32_t, std::int16_t>, std::size_t> forward_;
};

}  // namespace

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
  if (posts_messages(schedule))
    return !current                ? without_waits(schedule->posted)
           : posts_waits(schedule) ? schedule->posted
                                   : with_waits(schedule);
  const bool deferred = options.posting == Lowering::kDeferred;
  if (!current) return defer_if(deferred, schedule, without_waits(post_messages(schedule)));
  Schedule cells = schedule;
  cells.posted = cells_since_2_15(schedule);
  std::vector<RankOrder> lists = post_messages(require_valid(std::move(cells)));
  for (RankOrder& list : lists) list = add_send_waits(list);
  return defer_if(deferred, schedule, std::move(lists));
}

}  // namespace

std::vector<RankOrder> make_pytorch_lists(const ValidSchedule& schedule,
                                          const PytorchListOptions& options) {
  std::vector<RankOrder> lists = make_unlimited_lists(schedule, options);
  const bool waits = options.release == PytorchRelease::kFrom215;
  return waits && options.send_budget ? limit_sends(schedule, lists, *options.send_budget) : lists;
}

}  // namespace bubblescope::inline sim
