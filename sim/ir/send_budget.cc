// Moves waits as PyTorch does, with tables of what precedes what instead of searches in a graph.
#include "sim/ir/send_budget.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "sim/ir/defer_receives.h"
#include "sim/ir/depend.h"
#include "sim/ir/error.h"
#include "sim/ir/post_messages.h"
#include "sim/ir/pytorch_lists.h"

namespace bubblescope::inline sim {

namespace {

/// A place in a rank's list, not counting its WAIT_SENDs.
struct Cell {
  std::size_t rank = 0;
  std::uint32_t at = 0;
};

constexpr std::uint32_t kNoCell = std::numeric_limits<std::uint32_t>::max();

/// The order of cells: each comes before the next one of its rank, and before those that edges
/// name.
class CellOrder {
 public:
  explicit CellOrder(std::vector<std::size_t> lengths)
      : lengths_(std::move(lengths)),
        peers_(lengths_.size()),
        earliest_(lengths_.size(), kNoCell) {}

  void add(Cell before, Cell after) {
    std::vector<std::uint32_t>& first = first_of(before.rank, after.rank);
    for (std::size_t at = before.at + 1; at-- > 0 && after.at < first[at];) first[at] = after.at;
  }

  /// Whether `before` is `after`, or must come before it.
  bool precedes(Cell before, Cell after) {
    std::fill(earliest_.begin(), earliest_.end(), kNoCell);
    earliest_[before.rank] = before.at;
    reached_.assign(1, before.rank);
    while (!reached_.empty() && earliest_[after.rank] > after.at) {
      const std::size_t rank = reached_.back();
      reached_.pop_back();
      for (const Peer& peer : peers_[rank]) {
        const std::uint32_t at = peer.first[earliest_[rank]];
        if (at >= earliest_[peer.rank]) continue;
        earliest_[peer.rank] = at;
        reached_.push_back(peer.rank);
      }
    }
    return earliest_[after.rank] <= after.at;
  }

 private:
  /// By cell of the rank: the first cell of the peer before which this cell or a later one must be.
  struct Peer {
    std::size_t rank = 0;
    std::vector<std::uint32_t> first;
  };

  std::vector<std::uint32_t>& first_of(std::size_t rank, std::size_t other) {
    for (Peer& peer : peers_[rank])
      if (peer.rank == other) return peer.first;
    peers_[rank].push_back({other, std::vector<std::uint32_t>(lengths_[rank], kNoCell)});
    return peers_[rank].back().first;
  }

  std::vector<std::size_t> lengths_;      ///< [rank]
  std::vector<std::vector<Peer>> peers_;  ///< [rank]
  std::vector<std::uint32_t> earliest_;   ///< [rank]: of precedes()
  std::vector<std::size_t> reached_;      ///< likewise
};

std::vector<std::size_t> count_cells(const std::vector<RankOrder>& lists) {
  std::vector<std::size_t> lengths;
  for (const RankOrder& list : lists)
    lengths.push_back(static_cast<std::size_t>(std::count_if(
        list.begin(), list.end(), [](const Op& op) { return !is_send_wait(op.kind); })));
  return lengths;
}

class SendLimiter {
 public:
  SendLimiter(const Schedule& schedule, const std::vector<RankOrder>& lists, std::int32_t budget)
      : schedule_(schedule),
        lists_(lists),
        budget_(static_cast<std::size_t>(budget)),
        index_(schedule),
        order_(count_cells(lists)),
        receive_(index_.size(), Cell{0, kNoCell}),
        is_moved_(index_.size(), false) {}

  std::vector<RankOrder> run() && {
    find_receives();
    for (std::size_t rank = 0; rank < lists_.size(); ++rank) add_edges(rank);
    std::vector<RankOrder> limited;
    for (std::size_t rank = 0; rank < lists_.size(); ++rank) limited.push_back(limit(rank));
    return limited;
  }

 private:
  std::size_t message_of(const Op& op) const { return index_(*find_carried_value(schedule_, op)); }

  void find_receives() {
    for (std::size_t rank = 0; rank < lists_.size(); ++rank) {
      std::uint32_t at = 0;
      for (const Op& op : lists_[rank]) {
        if (is_recv(op.kind)) receive_[message_of(op)] = {rank, at};
        if (!is_send_wait(op.kind)) ++at;
      }
    }
  }

  /// A receive needs its send, and a cell after a wait the receive of the send that it waits for.
  void add_edges(std::size_t rank) {
    std::uint32_t at = 0;
    std::vector<Cell> awaited;
    for (const Op& op : lists_[rank]) {
      if (is_send_wait(op.kind)) {
        awaited.push_back(receive_[message_of(op)]);
        continue;
      }
      const Cell own{rank, at++};
      if (is_send(op.kind)) order_.add(own, receive_[message_of(op)]);
      for (const Cell& receive : awaited) order_.add(receive, own);
      awaited.clear();
    }
  }

  RankOrder limit(std::size_t rank) {
    RankOrder limited;
    std::uint32_t at = 0;
    outstanding_.clear();
    for (const Op& op : lists_[rank]) {
      if (is_send_wait(op.kind)) {
        if (is_moved_[message_of(op)]) continue;
        std::erase_if(outstanding_,
                      [&](const Op& send) { return message_of(send) == message_of(op); });
      } else {
        if (is_send(op.kind)) {
          make_room({rank, at}, op, limited);
          outstanding_.push_back(op);
        }
        ++at;
      }
      limited.push_back(op);
    }
    return limited;
  }

  void make_room(Cell here, const Op& send, RankOrder& limited) {
    while (outstanding_.size() >= budget_) {
      const std::optional<std::size_t> chosen = choose(here);
      if (!chosen)
        throw Error(Fault::kProblem, schedule_.name + ": rank " + std::to_string(here.rank) +
                                         " cannot keep `send_budget` " + std::to_string(budget_) +
                                         " at " + to_string(send) +
                                         ": to wait for one of its sends would be a deadlock; " +
                                         "raise the budget");
      const Op sent = outstanding_[*chosen];
      outstanding_.erase(outstanding_.begin() + static_cast<std::ptrdiff_t>(*chosen));
      order_.add(receive_[message_of(sent)], here);
      is_moved_[message_of(sent)] = true;
      limited.push_back(make_send_wait(sent));
    }
  }

  std::optional<std::size_t> choose(Cell here) {
    std::optional<std::size_t> may_block;
    for (std::size_t at = 0; at < outstanding_.size(); ++at) {
      const Cell receive = receive_[message_of(outstanding_[at])];
      if (order_.precedes(here, receive)) continue;
      if (order_.precedes(receive, here)) return at;
      if (!may_block) may_block = at;
    }
    return may_block;
  }

  const Schedule& schedule_;
  const std::vector<RankOrder>& lists_;
  std::size_t budget_;
  ValueIndex index_;
  CellOrder order_;
  std::vector<Cell> receive_;    ///< by message
  std::vector<bool> is_moved_;   ///< by message: whether its wait has been placed earlier
  std::vector<Op> outstanding_;  ///< sends of the current rank, in posted order
};

bool posts_send_waits(const std::vector<RankOrder>& lists) {
  return std::any_of(lists.begin(), lists.end(), [](const RankOrder& list) {
    return std::any_of(list.begin(), list.end(),
                       [](const Op& op) { return is_send_wait(op.kind); });
  });
}

}  // namespace

std::string budget_text(std::int32_t budget) {
  return budget == kUnlimitedSends ? "none" : std::to_string(budget);
}

std::vector<RankOrder> limit_sends(const ValidSchedule& schedule,
                                   const std::vector<RankOrder>& lists, std::int32_t budget) {
  if (budget == kUnlimitedSends) return lists;
  return SendLimiter(schedule, lists, budget).run();
}

std::vector<RankOrder> make_awaited_lists(const ValidSchedule& schedule, ReceivePosting posting,
                                          std::int32_t budget) {
  std::vector<RankOrder> lists = post_messages(schedule);
  if (!posts_send_waits(lists))
    for (RankOrder& list : lists) list = add_send_waits(list);
  if (posting == ReceivePosting::kDeferred && !posts_messages(schedule))
    lists = defer_receives(schedule, lists);
  return limit_sends(schedule, lists, budget);
}

}  // namespace bubblescope::inline sim
