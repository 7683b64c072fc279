// Tries the orders of receive_order.h, and the early one of post_messages.h, in the simulator.
#include "sim/analysis/suggest_receives.h"

#include <cstddef>
#include <utility>

#include "sim/analysis/receive_order.h"
#include "sim/engine/simulate.h"
#include "sim/ir/lower_messages.h"

namespace bubblescope::inline sim {

namespace {

/// Copies the cells of `from` that are neither a compute op nor a message into `to`, before the
/// same op or send.
RankOrder restore_cells(const RankOrder& from, const RankOrder& to) {
  RankOrder kept;
  auto next = from.begin();
  const auto take_cells = [&] {
    for (; next != from.end() && !is_compute(next->kind) && !is_send(next->kind); ++next)
      if (!is_message(next->kind)) kept.push_back(*next);
  };
  for (const Op& op : to) {
    if (!is_recv(op.kind)) take_cells();
    kept.push_back(op);
    if (!is_recv(op.kind) && next != from.end()) ++next;
  }
  take_cells();
  return kept;
}

/// Puts receives between the halves of a pair, which are one cell, before it.
RankOrder keep_pairs_whole(const RankOrder& list) {
  RankOrder whole;
  std::size_t first = 0;
  bool is_open = false;
  for (const Op& op : list) {
    if (is_open && is_recv(op.kind)) {
      whole.insert(whole.begin() + static_cast<std::ptrdiff_t>(first++), op);
      continue;
    }
    if (op.pairing == Pairing::kFirst) first = whole.size();
    if (op.pairing != Pairing::kAlone) is_open = op.pairing == Pairing::kFirst;
    whole.push_back(op);
  }
  return whole;
}

std::vector<RankOrder> restore_cells(const std::vector<RankOrder>& from,
                                     std::vector<RankOrder> to) {
  for (std::size_t rank = 0; rank < to.size(); ++rank)
    to[rank] = keep_pairs_whole(restore_cells(from[rank], to[rank]));
  return to;
}

/// Suggests receive orders for one dataflow Program.
class ReceiveSuggester {
 public:
  ReceiveSuggester(const ValidSchedule& schedule, const LowerOptions& options,
                   const CostModel& costs, const Program& dataflow)
      : schedule_(schedule),
        options_(options),
        costs_(costs),
        dataflow_(dataflow),
        timeline_(simulate(dataflow, costs)),
        posted_(make_posted_lists(schedule, options.posting)) {}

  std::optional<ReceiveSuggestion> run() const {
    const std::optional<Nanos> as_posted = simulate_posted(posted_);
    std::optional<ReceiveSuggestion> best;
    for (const std::vector<RankOrder>& posted : candidates()) {
      std::optional<ReceiveSuggestion> next = attempt(posted);
      if (!next || (as_posted && next->makespan >= *as_posted)) continue;
      next->makespan_as_posted = as_posted;
      if (!best || is_better(*next, *best)) best = std::move(next);
    }
    return best;
  }

 private:
  static bool is_better(const ReceiveSuggestion& a, const ReceiveSuggestion& b) {
    return std::pair(a.makespan, a.moves.size()) < std::pair(b.makespan, b.moves.size());
  }

  std::vector<std::vector<RankOrder>> candidates() const {
    const std::vector<PostedSteps> steps = find_steps(schedule_, dataflow_, posted_);
    std::vector<std::vector<RankOrder>> lists;
    for (const ReceiveTiming timing :
         {ReceiveTiming::kLast, ReceiveTiming::kWhenLeft, ReceiveTiming::kWhenArrived})
      lists.push_back(restore_cells(posted_, order_receives(dataflow_, timeline_, steps, timing)));
    lists.push_back(make_posted_lists(schedule_, ReceivePosting::kAsap));
    return lists;
  }

  /// Empty for lists that deadlock, or differ in more than their receives.
  std::optional<ReceiveSuggestion> attempt(const std::vector<RankOrder>& posted) const {
    ReceiveSuggestion suggestion;
    suggestion.posted = posted;
    const std::optional<Nanos> makespan = simulate_posted(suggestion.posted);
    if (!makespan) return std::nullopt;
    suggestion.makespan = *makespan;
    suggestion.dataflow_makespan = compute_makespan(timeline_);
    for (std::int32_t rank = 0; rank < schedule_->shape.ranks; ++rank) {
      const auto moves = find_moved_receives(rank, posted_[rank], suggestion.posted[rank]);
      if (!moves) return std::nullopt;
      suggestion.moves.insert(suggestion.moves.end(), moves->begin(), moves->end());
    }
    return suggestion;
  }

  std::optional<Nanos> simulate_posted(const std::vector<RankOrder>& posted) const {
    const auto lowered =
        lower_messages(dataflow_, find_steps(schedule_, dataflow_, posted), options_);
    const auto* program = std::get_if<Program>(&lowered);
    if (!program) return std::nullopt;
    return compute_makespan(simulate(*program, costs_));
  }

  const ValidSchedule& schedule_;
  const LowerOptions& options_;
  const CostModel& costs_;
  const Program& dataflow_;
  Timeline timeline_;
  std::vector<RankOrder> posted_;
};

}  // namespace

std::optional<ReceiveSuggestion> suggest_receives(const ValidSchedule& schedule,
                                                  const LowerOptions& options,
                                                  const CostModel& costs) {
  if (options.mode == P2pMode::kDataflow) return std::nullopt;
  LowerOptions plain = options;
  plain.mode = P2pMode::kDataflow;
  const auto lowered = lower(schedule, plain);
  const auto* dataflow = std::get_if<Program>(&lowered);
  if (!dataflow) return std::nullopt;
  return ReceiveSuggester(schedule, options, costs, *dataflow).run();
}

std::string to_string(const ReceiveSuggestion& suggestion) {
  std::string text;
  for (const MovedReceive& move : suggestion.moves) text += to_string(move) + "\n";
  if (const std::optional<Nanos> before = suggestion.makespan_as_posted)
    text += "saves " + to_text(*before - suggestion.makespan);
  else
    text += "removes the deadlock";
  text += "; then the step takes " + to_text(suggestion.makespan);
  if (suggestion.makespan == suggestion.dataflow_makespan) text += ", the same as dataflow";
  return text + "\n";
}

}  // namespace bubblescope::inline sim
