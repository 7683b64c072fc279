// Makes passes over the ranks, as PyTorch's _add_send_recv does.
#include "sim/ir/post_messages.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "sim/ir/after_edges.h"
#include "sim/ir/depend.h"
#include "sim/ir/error.h"

namespace bubblescope::inline sim {

namespace {

class Posting {
 public:
  Posting(const Schedule& schedule, const std::vector<RankOrder>& cells)
      : schedule_(schedule),
        cells_(cells),
        index_(schedule),
        after_(schedule, index_),
        produced_(index_.size(), false),
        next_(cells.size(), 0),
        lists_(cells.size()) {}

  std::vector<RankOrder> run() && {
    for (std::size_t rank = 0; rank < cells_.size(); ++rank)
      lists_[rank].reserve(3 * cells_[rank].size());
    while (pass()) {
    }
    if (!done()) throw Error(Fault::kProblem, describe_deadlock());
    return std::move(lists_);
  }

 private:
  bool pass() {
    bool progress = false;
    for (std::size_t rank = 0; rank < cells_.size(); ++rank)
      if (step(rank)) progress = true;
    return progress;
  }

  /// Appends the rank's next cell, if there is one and it is ready.
  bool step(std::size_t rank) {
    const RankOrder& cells = cells_[rank];
    const std::size_t begin = next_[rank];
    if (begin == cells.size()) return false;
    const std::size_t end = std::min(begin + count_fused_cells(cells[begin]), cells.size());
    for (std::size_t at = begin; at < end; ++at)
      if (!is_ready(cells[at]) ||
          !is_released(std::span(cells).subspan(begin, end - begin), at - begin))
        return false;
    next_[rank] = end;
    if (cells[begin].kind == OpKind::kIdle) return true;
    for (std::size_t at = begin; at < end; ++at) lists_[rank].push_back(cells[at]);
    for (std::size_t at = begin; at < end; ++at) deliver(rank, cells[at]);
    return true;
  }

  /// Pairs and fused forwards are appended together.
  std::size_t count_fused_cells(const Op& op) const {
    if (op.pairing == Pairing::kFirst) return 2;
    return op.kind == OpKind::kForward ? static_cast<std::size_t>(schedule_.fused_forwards) : 1;
  }

  bool is_ready(const Op& op) const {
    if (!is_compute(op.kind)) return true;
    for (const Value& value : collect_needs(schedule_, op))
      if (!produced_[index_(value)] && !are_fused(schedule_, value, op)) return false;
    return true;
  }

  /// Whether the ops that one of `fused` waits for by after edges have run, or run with it.
  bool is_released(std::span<const Op> fused, std::size_t at) const {
    if (after_.empty() || !occurs_in_order(fused[at].kind)) return true;
    const auto runs_with_it = [&](std::size_t awaited) {
      return std::any_of(fused.begin(), fused.end(),
                         [&](const Op& op) { return index_(op) == awaited; });
    };
    for (const std::size_t awaited : after_.of(index_(fused[at])))
      if (!produced_[awaited] && !runs_with_it(awaited)) return false;
    return true;
  }

  void deliver(std::size_t rank, const Op& op) {
    if (occurs_in_order(op.kind)) produced_[index_(op)] = true;
    if (!is_compute(op.kind)) return;
    const Value value = value_of(op);
    const std::optional<std::int32_t> consumer = receiving_stage(schedule_, value);
    if (!consumer) return;
    if (!schedule_.graph.is_chain()) {
      for (const std::int32_t peer : receiving_ranks(schedule_, value))
        post(rank, value, *consumer, static_cast<std::size_t>(peer));
      return;
    }
    const auto peer = static_cast<std::size_t>(schedule_.rank_of(*consumer, op.microbatch));
    if (peer != rank) post(rank, value, *consumer, peer);
  }

  void post(std::size_t rank, const Value& value, std::int32_t consumer, std::size_t peer) {
    lists_[rank].push_back(make_send(value));
    lists_[peer].push_back(make_receive(schedule_, value, consumer));
  }

  bool done() const {
    for (std::size_t rank = 0; rank < cells_.size(); ++rank)
      if (next_[rank] < cells_[rank].size()) return false;
    return true;
  }

  std::string describe_deadlock() const {
    constexpr int kNamed = 8;
    std::string text;
    int waiting = 0;
    for (std::size_t rank = 0; rank < cells_.size(); ++rank) {
      if (next_[rank] == cells_[rank].size() || ++waiting > kNamed) continue;
      text += (text.empty() ? "" : ", ") + std::string("rank ") + std::to_string(rank) + " at " +
              to_string(cells_[rank][next_[rank]]);
    }
    if (waiting > kNamed) text += ", and " + std::to_string(waiting - kNamed) + " more";
    return "the messages cannot be placed, because these ranks wait for each other: " + text +
           "; reorder their ops ('bubblescope check' shows the cycle)";
  }

  const Schedule& schedule_;
  const std::vector<RankOrder>& cells_;
  ValueIndex index_;
  AfterEdges after_;
  std::vector<bool> produced_;
  std::vector<std::size_t> next_;
  std::vector<RankOrder> lists_;
};

}  // namespace

std::vector<RankOrder> post_messages(const ValidSchedule& schedule) {
  if (posts_messages(schedule)) return schedule->posted;
  return Posting(schedule, schedule->posted.empty() ? schedule->order : schedule->posted).run();
}

}  // namespace bubblescope::inline sim
