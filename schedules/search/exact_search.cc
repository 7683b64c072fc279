// Searches depth first, and remembers failed prefixes.
#include "schedules/search/exact_search.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "schedules/search/deadline_test.h"
#include "schedules/search/failed_prefixes.h"

namespace bubblescope::schedules {

namespace {

/// The value that an order must not exceed, and the effort that may be spent on finding one.
struct Question {
  Nanos value;
  std::int64_t ops;
  const StopRequest& stop;
};

class BranchAndBound {
 public:
  BranchAndBound(const SearchProblem& problem, const Question& question)
      : BranchAndBound(problem, problem, question) {}

  BranchAndBound(const MixedProblem& problem, const SearchProblem& relaxed,
                 const Question& question)
      : BranchAndBound(problem.split, relaxed, question) {
    mixed_ = &problem;
    for (std::int32_t chunk = 0; chunk < problem.split.chunks; ++chunk)
      tokens_.push_back(static_cast<Token>(token_of(chunk, Step::kInputGrad) + kWholeBackward));
  }

  ExactAnswer run() {
    ExactAnswer answer;
    const std::int64_t effort = effort_left_;
    if (descend()) answer.order = chosen_;
    answer.ops = effort - effort_left_;
    answer.complete = !stopped_early_;
    return answer;
  }

 private:
  /// `bounding` is a relaxation: no order of `problem` is shorter than its best order.
  BranchAndBound(const SearchProblem& problem, const SearchProblem& bounding,
                 const Question& question)
      : problem_(problem),
        stop_(question.stop),
        effort_left_(question.ops),
        test_(bounding),
        progress_(problem),
        held_(static_cast<std::size_t>(problem.ranks), 0),
        refused_(static_cast<std::size_t>(problem.ranks), 0),
        chosen_(static_cast<std::size_t>(problem.ranks)),
        ops_left_(problem.ops()) {
    test_.set_value(question.value);
    for (std::int32_t number = 0; number < problem.tokens(); ++number)
      if (!problem.fused || step_of(static_cast<Token>(number)) != Step::kWeightGrad)
        tokens_.push_back(static_cast<Token>(number));
  }

  /// An op that could run next on its rank.
  struct Candidate {
    std::int32_t rank = 0;
    Token token = 0;
    Nanos start = 0;
    Nanos end = 0;
  };

  /// The state to restore when an op is undone, besides counts.
  struct Before {
    Nanos free;
    unsigned long long refused;
  };

  /// The row of a token's op. A full backward has the row of its I.
  std::size_t row(std::int32_t rank, Token token) const {
    const Token half = without_whole(token);
    return static_cast<std::size_t>(problem_.stage(rank, half)) * kSteps + half % kSteps;
  }
  const SearchProblem& problem_of(Token token) const {
    return is_whole(token) ? mixed_->full : problem_;
  }
  Nanos duration_of(std::int32_t rank, Token token) const {
    return problem_of(token).duration_of(rank, without_whole(token));
  }
  std::int64_t memory_of(std::int32_t rank, Token token) const {
    return problem_of(token).memory_of(rank, without_whole(token));
  }
  /// Returns the position of a token's bit in a mask.
  int bit_of(Token token) const {
    return is_whole(token) ? problem_.tokens() + chunk_of(without_whole(token)) : token;
  }
  Nanos end_of(std::size_t row, std::int32_t microbatch) const {
    return progress_.end[row * static_cast<std::size_t>(problem_.microbatches) +
                         static_cast<std::size_t>(microbatch)];
  }

  /// The time at which the inputs of the rank's next op of this kind arrive. Empty if they have not
  /// been produced, if no such op is left, or if there is no memory for it.
  std::optional<Nanos> arrival(std::int32_t rank, Token token) const {
    const std::size_t own = row(rank, token);
    const std::int32_t next = progress_.count[own];
    if (next == problem_.microbatches) return std::nullopt;
    if (held_[rank] + memory_of(rank, token) > problem_.cap[rank]) return std::nullopt;
    const Step step = step_of(without_whole(token));
    if (step != Step::kForward && progress_.count[own - 1] <= next) return std::nullopt;
    const auto stage = static_cast<std::int32_t>(own / kSteps);
    if (is_whole(token) && !full_can_pay(*mixed_, stage)) return std::nullopt;
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
      for (const Token token : tokens_) {
        if (refused_[rank] >> bit_of(token) & 1) continue;
        const std::optional<Nanos> ready = arrival(rank, token);
        if (!ready) continue;
        const Nanos start = std::max(*ready, progress_.free[rank]);
        found.push_back({rank, token, start, start + duration_of(rank, token)});
      }
    return found;
  }

  /// Whether the op could be moved to the front at no cost. An I could not if its W takes longer
  /// than the full backward and a best order contains the full backward; then the full backward
  /// could be moved itself.
  bool can_come_first(const Candidate& candidate) const {
    if (mixed_ == nullptr || candidate.token % kSteps != 1 || is_whole(candidate.token))
      return true;
    const auto weight = static_cast<Token>(candidate.token + 1);
    return duration_of(candidate.rank, weight) <=
           mixed_->full.duration_of(candidate.rank, candidate.token);
  }

  /// The ops among which one rank's next op can be chosen: gradients first, W last.
  std::vector<Candidate> find_conflict_set(std::vector<Candidate> all) const {
    const auto first =
        std::min_element(all.begin(), all.end(), [this](const Candidate& a, const Candidate& b) {
          return std::pair(!can_come_first(a), a.end) < std::pair(!can_come_first(b), b.end);
        });
    const Candidate earliest = *first;
    std::erase_if(all, [&](const Candidate& other) {
      if (other.rank != earliest.rank) return true;
      return other.token != earliest.token && other.start >= earliest.end;
    });
    const auto priority = [](const Candidate& candidate) {
      constexpr int kOrder[kSteps] = {1, 0, 2};
      const Token half = without_whole(candidate.token);
      return std::tuple(kOrder[half % kSteps], is_whole(candidate.token), -half);
    };
    std::sort(all.begin(), all.end(),
              [&](const Candidate& a, const Candidate& b) { return priority(a) < priority(b); });
    return all;
  }

  /// Whether moving one of these ops to the front could leave too little memory for an op that
  /// would have come before it.
  bool may_exceed_memory(const std::vector<Candidate>& set) const {
    const std::int32_t rank = set.front().rank;
    std::int64_t growth = 0;
    for (std::int32_t token = 0; token < problem_.tokens(); ++token)
      if (progress_.count[row(rank, static_cast<Token>(token))] < problem_.microbatches)
        growth += std::max<std::int64_t>(0, problem_.memory_of(rank, static_cast<Token>(token)));
    return std::any_of(set.begin(), set.end(), [&](const Candidate& candidate) {
      const std::int64_t own = memory_of(rank, candidate.token);
      return own > 0 && growth > own;
    });
  }

  void note_end(std::size_t row, Nanos end) {
    progress_.end[row * static_cast<std::size_t>(problem_.microbatches) +
                  static_cast<std::size_t>(progress_.count[row]++)] = end;
    --ops_left_;
  }

  void forget_end(std::size_t row) {
    --progress_.count[row];
    ++ops_left_;
  }

  Before put(const Candidate& candidate) {
    const auto [rank, token, start, end] = candidate;
    const Before before{progress_.free[rank], refused_[rank]};
    note_end(row(rank, token), end);
    if (is_whole(token)) note_end(row(rank, token) + 1, end);
    progress_.free[rank] = end;
    held_[rank] += memory_of(rank, token);
    refused_[rank] = 0;
    chosen_[rank].push_back(token);
    return before;
  }

  void undo(const Candidate& candidate, const Before& before) {
    const auto [rank, token, start, end] = candidate;
    forget_end(row(rank, token));
    if (is_whole(token)) forget_end(row(rank, token) + 1);
    progress_.free[rank] = before.free;
    held_[rank] -= memory_of(rank, token);
    refused_[rank] = before.refused;
    chosen_[rank].pop_back();
  }

  /// Returns true if an order was found; it is then in chosen_.
  bool descend() {
    if (ops_left_ == 0) return test_.passes(progress_);
    effort_left_ -= ops_left_;
    if (effort_left_ < 0 || stopped(stop_)) stopped_early_ = true;
    if (stopped_early_ || !test_.passes(progress_)) return false;
    FailedPrefixes::Prefix prefix = failed_.describe(problem_, progress_, refused_);
    if (failed_.dominates(prefix)) return false;
    const bool found = branch();
    if (!found && !stopped_early_) failed_.add(std::move(prefix));
    return found;
  }

  bool branch() {
    std::vector<Candidate> all = candidates();
    if (all.empty()) return false;
    const std::vector<Candidate> set = find_conflict_set(std::move(all));
    for (const Candidate& candidate : set) {
      const Before before = put(candidate);
      if (descend()) return true;
      undo(candidate, before);
      if (stopped_early_) return false;
    }
    return may_exceed_memory(set) && exclude_all(set);
  }

  /// Continues with none of these ops next on their rank.
  bool exclude_all(const std::vector<Candidate>& set) {
    unsigned long long& refused = refused_[set.front().rank];
    const unsigned long long before = refused;
    for (const Candidate& candidate : set) refused |= 1ull << bit_of(candidate.token);
    if (descend()) return true;
    refused = before;
    return false;
  }

  const SearchProblem& problem_;
  const MixedProblem* mixed_ = nullptr;  ///< null unless backwards may be full too
  std::vector<Token> tokens_;            ///< the tokens that a rank can choose from
  const StopRequest& stop_;
  std::int64_t effort_left_;
  DeadlineTest test_;
  Progress progress_;
  std::vector<std::int64_t> held_;           ///< [rank]
  std::vector<unsigned long long> refused_;  ///< [rank]: a bit per token that must not come next
  MixedOrder chosen_;
  std::int64_t ops_left_;
  bool stopped_early_ = false;
  FailedPrefixes failed_;
};

}  // namespace

bool can_be_exact(const SearchProblem& problem) {
  return problem.from_step_start || compute_first_starts(problem).has_value();
}

ExactAnswer find_order_within(const SearchProblem& problem, Nanos value, std::int64_t ops,
                              const StopRequest& stop) {
  return BranchAndBound(problem, {value, ops, stop}).run();
}

ExactAnswer find_mixed_order_within(const MixedProblem& problem, Nanos value, std::int64_t ops,
                                    const StopRequest& stop) {
  return BranchAndBound(problem, problem.relaxed(), {value, ops, stop}).run();
}

}  // namespace bubblescope::schedules
