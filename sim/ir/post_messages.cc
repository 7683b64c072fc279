// Makes passes over the ranks, as PyTorch's _add_send_recv does.
#include "sim/ir/post_messages.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
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
        states_(index_.size(), State::kMissing),
        next_(cells.size(), 0),
        turns_((cells.size() + kBits - 1) / kBits),
        next_turns_(turns_.size()),
        lists_(cells.size()) {}

  std::vector<RankOrder> run() && {
    for (std::size_t rank = 0; rank < cells_.size(); ++rank) {
      lists_[rank].reserve(3 * cells_[rank].size());
      add(next_turns_, rank);
    }
    while (pass()) {
    }
    if (!done()) throw Error(Fault::kProblem, describe_deadlock());
    return std::move(lists_);
  }

 private:
  enum class State : std::uint8_t { kMissing, kAwaited, kProduced };

  /// Ranks, one bit for each.
  using RankSet = std::vector<std::uint64_t>;
  static constexpr std::size_t kBits = 64;

  static void add(RankSet& ranks, std::size_t rank) {
    ranks[rank / kBits] |= std::uint64_t{1} << rank % kBits;
  }

  /// Lets each rank append a cell, except those that wait for a value that is not produced yet.
  bool pass() {
    std::swap(turns_, next_turns_);
    bool progress = false;
    for (std::size_t at = 0; at < turns_.size(); ++at)
      while (turns_[at] != 0) {
        const auto bit = static_cast<std::size_t>(std::countr_zero(turns_[at]));
        turns_[at] &= turns_[at] - 1;
        progress |= step(at * kBits + bit);
      }
    return progress;
  }

  /// Appends the rank's next cell, if there is one and it is ready.
  bool step(std::size_t rank) {
    const RankOrder& cells = cells_[rank];
    const std::size_t begin = next_[rank];
    if (begin == cells.size()) return false;
    const std::size_t end = std::min(begin + count_fused_cells(cells[begin]), cells.size());
    const auto fused = std::span(cells).subspan(begin, end - begin);
    for (std::size_t at = 0; at < fused.size(); ++at)
      if (const std::optional<std::size_t> missing = find_missing(fused, at)) {
        states_[*missing] = State::kAwaited;
        waiting_[*missing].push_back(rank);
        return false;
      }
    next_[rank] = end;
    add(next_turns_, rank);
    if (cells[begin].kind == OpKind::kIdle) return true;
    lists_[rank].insert(lists_[rank].end(), fused.begin(), fused.end());
    for (const Op& op : fused) deliver(rank, op);
    return true;
  }

  /// Pairs and fused forwards are appended together.
  std::size_t count_fused_cells(const Op& op) const {
    if (op.pairing == Pairing::kFirst) return 2;
    return op.kind == OpKind::kForward ? static_cast<std::size_t>(schedule_.fused_forwards) : 1;
  }

  /// Finds an input that one of `fused` lacks, or an op that it must wait for by an after edge,
  /// unless that op runs together with it.
  std::optional<std::size_t> find_missing(std::span<const Op> fused, std::size_t at) const {
    const Op& op = fused[at];
    if (is_compute(op.kind))
      for (const Value& value : collect_needs(schedule_, op))
        if (!is_produced(index_(value)) && !are_fused(schedule_, value, op)) return index_(value);
    if (after_.empty() || !occurs_in_order(op.kind)) return {};
    const auto runs_with_it = [&](std::size_t awaited) {
      return std::any_of(fused.begin(), fused.end(),
                         [&](const Op& other) { return index_(other) == awaited; });
    };
    for (const std::size_t awaited : after_.of(index_(op)))
      if (!is_produced(awaited) && !runs_with_it(awaited)) return awaited;
    return {};
  }

  bool is_produced(std::size_t value) const { return states_[value] == State::kProduced; }

  /// Wakes the ranks that wait for a value: those after `rank` continue in the same pass.
  void produce(std::size_t rank, std::size_t value) {
    const State before = std::exchange(states_[value], State::kProduced);
    if (before != State::kAwaited) return;
    const auto waiting = waiting_.extract(value);
    for (const std::size_t other : waiting.mapped())
      add(other > rank ? turns_ : next_turns_, other);
  }

  void deliver(std::size_t rank, const Op& op) {
    if (occurs_in_order(op.kind)) produce(rank, index_(op));
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
  std::vector<State> states_;                                          ///< of values
  std::unordered_map<std::size_t, std::vector<std::size_t>> waiting_;  ///< ranks, by value
  std::vector<std::size_t> next_;                                      ///< [rank]
  RankSet turns_;       ///< the ranks that may append a cell in this pass
  RankSet next_turns_;  ///< and in the next one
  std::vector<RankOrder> lists_;
};

}  // namespace

std::vector<RankOrder> post_messages(const ValidSchedule& schedule) {
  if (posts_messages(schedule)) return schedule->posted;
  return Posting(schedule, schedule->posted.empty() ? schedule->order : schedule->posted).run();
}

}  // namespace bubblescope::inline sim
