// Depth-first search with a memory of failures.
#include "schedules/search/exact_search.h"

#include <algorithm>
#include <utility>

#include "schedules/search/deadline_test.h"
#include "schedules/search/failed_prefixes.h"

namespace bubblescope {

namespace {

class BranchAndBound {
 public:
  BranchAndBound(const SearchProblem& problem, Nanos value, std::int64_t ops,
                 const StopRequest& stop)
      : problem_(problem),
        stop_(stop),
        effort_left_(ops),
        test_(problem),
        progress_(problem),
        held_(static_cast<std::size_t>(problem.ranks), 0),
        refused_(static_cast<std::size_t>(problem.ranks), 0),
        chosen_(static_cast<std::size_t>(problem.ranks)),
        ops_left_(problem.ops()) {
    test_.set_value(value);
  }

  ExactAnswer run() {
    ExactAnswer answer;
    const std::int64_t effort = effort_left_;
    if (descend()) answer.order = order();
    answer.ops = effort - effort_left_;
    answer.complete = !gave_up_;
    return answer;
  }

 private:
  /// An op that could run next on its rank.
  struct Candidate {
    std::int32_t rank = 0;
    Token token = 0;
    Nanos start = 0;
    Nanos end = 0;
  };

  /// The state that running an op changes, besides counts.
  struct Before {
    Nanos free;
    unsigned long long refused;
  };

  std::size_t row(std::int32_t rank, Token token) const {
    return static_cast<std::size_t>(problem_.stage(rank, token)) * kSteps + token % kSteps;
  }
  Nanos end_of(std::size_t row, std::int32_t microbatch) const {
    return progress_.end[row * static_cast<std::size_t>(problem_.microbatches) +
                         static_cast<std::size_t>(microbatch)];
  }

  /// When the inputs of the rank's next op of this kind arrive; empty if they have not been
  /// produced, if there is no such op left, or if there is no memory for it.
  std::optional<Nanos> arrival(std::int32_t rank, Token token) const {
    const std::size_t own = row(rank, token);
    const std::int32_t next = progress_.count[own];
    if (next == problem_.microbatches) return std::nullopt;
    if (held_[rank] + problem_.memory_of(rank, token) > problem_.cap[rank]) return std::nullopt;
    const Step step = step_of(token);
    if (step != Step::kForward && progress_.count[own - 1] <= next) return std::nullopt;
    const std::int32_t stage = problem_.stage(rank, token);
    const bool is_first = stage == (step == Step::kForward ? 0 : problem_.stages() - 1);
    if (step == Step::kWeightGrad || is_first) return 0;
    const bool forward = step == Step::kForward;
    const std::size_t input = forward ? own - kSteps : own + kSteps;
    if (progress_.count[input] <= next) return std::nullopt;
    return end_of(input, next) +
           (forward ? problem_.forward_latency : problem_.backward_latency)[stage];
  }

  std::vector<Candidate> candidates() const {
    std::vector<Candidate> found;
    for (std::int32_t rank = 0; rank < problem_.ranks; ++rank)
      for (std::int32_t number = 0; number < problem_.tokens(); ++number) {
        const auto token = static_cast<Token>(number);
        if (problem_.fused && step_of(token) == Step::kWeightGrad) continue;
        if (refused_[rank] >> number & 1) continue;
        const std::optional<Nanos> ready = arrival(rank, token);
        if (!ready) continue;
        const Nanos start = std::max(*ready, progress_.free[rank]);
        found.push_back({rank, token, start, start + problem_.duration_of(rank, token)});
      }
    return found;
  }

  /// The ops from which the next one of some rank can be chosen: gradients first, W last.
  static std::vector<Candidate> conflict_set(std::vector<Candidate> all) {
    const auto first =
        std::min_element(all.begin(), all.end(),
                         [](const Candidate& a, const Candidate& b) { return a.end < b.end; });
    const Candidate earliest = *first;
    std::erase_if(all, [&](const Candidate& other) {
      if (other.rank != earliest.rank) return true;
      return other.token != earliest.token && other.start >= earliest.end;
    });
    const auto priority = [](const Candidate& candidate) {
      constexpr int kOrder[kSteps] = {1, 0, 2};
      return std::pair(kOrder[candidate.token % kSteps], -candidate.token);
    };
    std::sort(all.begin(), all.end(),
              [&](const Candidate& a, const Candidate& b) { return priority(a) < priority(b); });
    return all;
  }

  /// Whether moving one of these ops to the front could leave too little memory for an op that
  /// would have come before it.
  bool may_crowd(const std::vector<Candidate>& set) const {
    const std::int32_t rank = set.front().rank;
    std::int64_t growth = 0;
    for (std::int32_t token = 0; token < problem_.tokens(); ++token)
      if (progress_.count[row(rank, static_cast<Token>(token))] < problem_.microbatches)
        growth += std::max<std::int64_t>(0, problem_.memory_of(rank, static_cast<Token>(token)));
    return std::any_of(set.begin(), set.end(), [&](const Candidate& candidate) {
      const std::int64_t own = problem_.memory_of(rank, candidate.token);
      return own > 0 && growth > own;
    });
  }

  Before put(const Candidate& candidate) {
    const std::size_t own = row(candidate.rank, candidate.token);
    const Before before{progress_.free[candidate.rank], refused_[candidate.rank]};
    progress_.end[own * static_cast<std::size_t>(problem_.microbatches) +
                  static_cast<std::size_t>(progress_.count[own]++)] = candidate.end;
    progress_.free[candidate.rank] = candidate.end;
    held_[candidate.rank] += problem_.memory_of(candidate.rank, candidate.token);
    refused_[candidate.rank] = 0;
    chosen_[candidate.rank].push_back(candidate.token);
    --ops_left_;
    return before;
  }

  void take_back(const Candidate& candidate, const Before& before) {
    --progress_.count[row(candidate.rank, candidate.token)];
    progress_.free[candidate.rank] = before.free;
    held_[candidate.rank] -= problem_.memory_of(candidate.rank, candidate.token);
    refused_[candidate.rank] = before.refused;
    chosen_[candidate.rank].pop_back();
    ++ops_left_;
  }

  /// True if an order was found; it is then in chosen_.
  bool descend() {
    if (ops_left_ == 0) return test_.passes(progress_);
    effort_left_ -= ops_left_;
    if (effort_left_ < 0 || stopped(stop_)) gave_up_ = true;
    if (gave_up_ || !test_.passes(progress_)) return false;
    FailedPrefixes::Prefix prefix = failed_.describe(problem_, progress_, refused_);
    if (failed_.covers(prefix)) return false;
    const bool found = branch();
    if (!found && !gave_up_) failed_.add(std::move(prefix));
    return found;
  }

  bool branch() {
    std::vector<Candidate> all = candidates();
    if (all.empty()) return false;
    const std::vector<Candidate> set = conflict_set(std::move(all));
    for (const Candidate& candidate : set) {
      const Before before = put(candidate);
      if (descend()) return true;
      take_back(candidate, before);
      if (gave_up_) return false;
    }
    return may_crowd(set) && wait_for_other(set);
  }

  /// Continues with none of these ops next on their rank.
  bool wait_for_other(const std::vector<Candidate>& set) {
    unsigned long long& refused = refused_[set.front().rank];
    const unsigned long long before = refused;
    for (const Candidate& candidate : set) refused |= 1ull << candidate.token;
    if (descend()) return true;
    refused = before;
    return false;
  }

  TokenOrder order() const {
    TokenOrder order;
    for (const std::vector<Token>& tokens : chosen_)
      order.insert(order.end(), tokens.begin(), tokens.end());
    return order;
  }

  const SearchProblem& problem_;
  const StopRequest& stop_;
  std::int64_t effort_left_;
  DeadlineTest test_;
  Progress progress_;
  std::vector<std::int64_t> held_;  ///< [rank]
  /// [rank]: a bit for every token that must not come next.
  std::vector<unsigned long long> refused_;
  std::vector<std::vector<Token>> chosen_;  ///< [rank]
  std::int64_t ops_left_;
  bool gave_up_ = false;
  FailedPrefixes failed_;
};

}  // namespace

bool can_be_exact(const SearchProblem& problem) {
  return problem.from_step_start || first_starts(problem).has_value();
}

ExactAnswer find_order_within(const SearchProblem& problem, Nanos value, std::int64_t ops,
                              const StopRequest& stop) {
  return BranchAndBound(problem, value, ops, stop).run();
}

}  // namespace bubblescope
