// List scheduling of F, I and W under caps.
#include "schedules/search/dispatch.h"

#include <algorithm>
#include <limits>

namespace bubblescope::schedules {

namespace {

constexpr Nanos kNever = std::numeric_limits<Nanos>::max();

/// The times at which ranks decide next, in blocks, so that the earliest of thousands is found
/// without looking at all.
class Decisions {
 public:
  explicit Decisions(std::int32_t ranks)
      : at_(static_cast<std::size_t>(ranks)), earliest_((at_.size() + kBlock - 1) / kBlock) {
    for (std::size_t block = 0; block < earliest_.size(); ++block)
      earliest_[block] = block * kBlock;
  }

  Nanos at(std::int32_t rank) const { return at_[static_cast<std::size_t>(rank)]; }

  void set(std::int32_t rank, Nanos time) {
    const auto changed = static_cast<std::size_t>(rank);
    at_[changed] = time;
    std::size_t& earliest = earliest_[changed / kBlock];
    if (changed == earliest)
      earliest = find_earliest(changed / kBlock);
    else if (time < at_[earliest] || (time == at_[earliest] && changed < earliest))
      earliest = changed;
  }

  /// Returns the first of the ranks that decide next.
  std::int32_t earliest() const {
    const auto found = std::min_element(
        earliest_.begin(), earliest_.end(),
        [&](std::size_t left, std::size_t right) { return at_[left] < at_[right]; });
    return static_cast<std::int32_t>(*found);
  }

 private:
  static constexpr std::size_t kBlock = 64;

  std::size_t find_earliest(std::size_t block) const {
    const auto first = at_.begin() + static_cast<std::ptrdiff_t>(block * kBlock);
    const auto last =
        at_.begin() + static_cast<std::ptrdiff_t>(std::min(at_.size(), (block + 1) * kBlock));
    return static_cast<std::size_t>(std::min_element(first, last) - at_.begin());
  }

  std::vector<Nanos> at_;              ///< [rank]
  std::vector<std::size_t> earliest_;  ///< [block]: its first rank of those that decide next
};

class Dispatcher {
 public:
  Dispatcher(const SearchProblem& problem, const DispatchRule& rule)
      : problem_(problem),
        rule_(rule),
        ranks_(static_cast<std::size_t>(problem.ranks)),
        decisions_(problem.ranks) {
    order_.resize(static_cast<std::size_t>(problem.ops()));
    count_.resize(static_cast<std::size_t>(problem.stages()) * kSteps);
    end_.resize(count_.size() * static_cast<std::size_t>(problem.microbatches));
    for (const Token token : rule.preference) candidates_.push_back({token, 0});
    room_.resize(static_cast<std::size_t>(problem.stages()));
    for (std::int32_t rank = 0; rank < problem.ranks; ++rank)
      for (std::int32_t chunk = 0; chunk < problem.chunks; ++chunk)
        room_[problem.stage(rank, token_of(chunk, Step::kForward))] =
            memory_for_rest(problem, rank, chunk);
    for (Rank& rank : ranks_)
      rank.pending.reserve(static_cast<std::size_t>(problem.chunks) * problem.microbatches);
  }

  std::optional<TokenOrder> run() {
    for (std::int64_t left = problem_.ops(); left > 0;) {
      const std::int32_t rank = decisions_.earliest();
      if (decisions_.at(rank) == kNever) return std::nullopt;
      if (decide(rank)) --left;
    }
    return std::move(order_);
  }

 private:
  struct Rank {
    Nanos free = 0;
    Nanos idle = 0;
    std::int64_t held = 0;
    std::size_t written = 0;
    std::size_t first_pending = 0;
    std::vector<Token> pending;
  };

  struct RankedToken {
    Token token = 0;
    std::int32_t turn = 0;
  };

  /// An op that the rank could run next, and the earliest time.
  struct Choice {
    std::optional<Token> token;
    Nanos ready = kNever;
  };

  bool allowed(std::int32_t rank, Token token) const {
    const std::int32_t row = problem_.stage(rank, token) * kSteps;
    const std::int64_t room = problem_.cap[rank] - ranks_[rank].held;
    if (step_of(token) != Step::kForward) return problem_.memory_of(rank, token) <= room;
    if (count_[row] - count_[row + 1] >= rule_.max_in_flight) return false;
    return room_[static_cast<std::size_t>(row / kSteps)] <= room;
  }

  Nanos arrival(std::int32_t rank, Token token) const {
    const std::int32_t stage = problem_.stage(rank, token);
    const std::int32_t row = stage * kSteps + token % kSteps;
    const std::int32_t microbatch = count_[row];
    const bool forward = step_of(token) == Step::kForward;
    if (microbatch == problem_.microbatches) return kNever;
    if (!forward && count_[row - 1] <= microbatch) return kNever;
    if (stage == (forward ? 0 : problem_.stages() - 1)) return 0;
    const std::int32_t input = forward ? row - kSteps : row + kSteps;
    if (count_[input] <= microbatch) return kNever;
    return end_[static_cast<std::size_t>(input) * problem_.microbatches + microbatch] +
           (forward ? problem_.forward_latency : problem_.backward_latency)[stage];
  }

  void put(std::int32_t rank, Token token, Nanos start) {
    Rank& state = ranks_[rank];
    if (state.written > 0) state.idle += start - state.free;
    state.free = start + problem_.duration_of(rank, token);
    decisions_.set(rank, state.free);
    state.held += problem_.memory_of(rank, token);
    order_[static_cast<std::size_t>(rank) * problem_.ops_per_rank() + state.written++] = token;
    const std::int32_t stage = problem_.stage(rank, token);
    const std::int32_t row = stage * kSteps + token % kSteps;
    end_[static_cast<std::size_t>(row) * problem_.microbatches + count_[row]++] = state.free;
    if (step_of(token) == Step::kInputGrad && !problem_.fused)
      state.pending.push_back(static_cast<Token>(token + 1));
    if (step_of(token) == Step::kForward && stage + 1 < problem_.stages()) wake(stage + 1, start);
    if (step_of(token) == Step::kInputGrad && stage > 0) wake(stage - 1, start);
  }

  void wake(std::int32_t stage, Nanos now) {
    const std::int32_t rank = problem_.rank_of_stage[stage];
    const Nanos time = std::max(ranks_[rank].free, now);
    if (time < decisions_.at(rank)) decisions_.set(rank, time);
  }

  /// Returns the position of a rank's next op with this token in the skeleton.
  std::int32_t turn(std::int32_t rank, Token token) const {
    const std::int32_t row = problem_.stage(rank, token) * kSteps + token % kSteps;
    if (count_[row] == problem_.microbatches) return std::numeric_limits<std::int32_t>::max() / 2;
    return rule_.turn[static_cast<std::size_t>(row) * problem_.microbatches + count_[row]];
  }

  /// Sorts a rank's next ops by preference and returns how many may run.
  std::size_t sort_candidates(std::int32_t rank) {
    if (rule_.turn.empty()) return candidates_.size();
    for (RankedToken& candidate : candidates_) candidate.turn = turn(rank, candidate.token);
    // There are few, usually already in order.
    for (std::size_t next = 1; next < candidates_.size(); ++next)
      for (std::size_t at = next; at > 0 && candidates_[at].turn < candidates_[at - 1].turn; --at)
        std::swap(candidates_[at], candidates_[at - 1]);
    const std::int32_t last = candidates_.front().turn + rule_.window;
    std::size_t count = 1;
    while (count < candidates_.size() && candidates_[count].turn <= last) ++count;
    return count;
  }

  /// Returns the most wanted op that is ready now, and the next op that will be ready.
  std::pair<Choice, Choice> choose_next(std::int32_t rank, Nanos now) {
    Choice soon;
    const std::size_t count = sort_candidates(rank);
    for (std::size_t candidate = 0; candidate < count; ++candidate) {
      const Token token = candidates_[candidate].token;
      const Nanos ready = allowed(rank, token) ? arrival(rank, token) : kNever;
      if (ready <= now) return {{token, ready}, soon};
      if (ready < soon.ready) soon = {token, ready};
    }
    return {{}, soon};
  }

  /// Whether to idle until `ready` instead of running something of this duration.
  bool waits(const Rank& state, Nanos now, Nanos duration, Nanos ready) const {
    if (ready == kNever || now + duration <= ready) return false;
    return ready - state.free <= rule_.idle_budget - state.idle;
  }

  /// Runs an op and returns true, or sets the time of the next decision.
  bool decide(std::int32_t rank) {
    Rank& state = ranks_[rank];
    const Nanos now = std::max(decisions_.at(rank), state.free);
    const auto [best, soon] = choose_next(rank, now);
    Choice filler = best;
    const bool has_weight = state.first_pending < state.pending.size();
    if (!best.token && has_weight) filler.token = state.pending[state.first_pending];
    const bool may_wait = best.token ? rule_.wait_for_wanted : true;
    if (filler.token &&
        !(may_wait && waits(state, now, problem_.duration_of(rank, *filler.token), soon.ready))) {
      if (!best.token) ++state.first_pending;
      put(rank, *filler.token, now);
      return true;
    }
    decisions_.set(rank, soon.ready);
    return false;
  }

  const SearchProblem& problem_;
  const DispatchRule& rule_;
  std::vector<Rank> ranks_;
  Decisions decisions_;
  std::vector<std::int64_t> room_;  ///< [stage]: memory_for_rest() at its F
  TokenOrder order_;
  std::vector<std::int32_t> count_;
  std::vector<Nanos> end_;
  std::vector<RankedToken> candidates_;
};

}  // namespace

std::vector<std::int32_t> turns(const SearchProblem& problem, const Skeleton& skeleton) {
  std::vector<std::int32_t> turn(static_cast<std::size_t>(problem.stages()) * kSteps *
                                 problem.microbatches);
  const std::size_t per_rank = skeleton.size() / static_cast<std::size_t>(problem.ranks);
  std::vector<std::int32_t> count(static_cast<std::size_t>(problem.stages()) * kSteps);
  for (std::size_t at = 0; at < skeleton.size(); ++at) {
    const Token token = skeleton[at];
    const auto rank = static_cast<std::int32_t>(at / per_rank);
    const std::int32_t row = problem.stage(rank, token) * kSteps + token % kSteps;
    turn[static_cast<std::size_t>(row) * problem.microbatches + count[row]++] =
        static_cast<std::int32_t>(at % per_rank);
  }
  return turn;
}

std::optional<TokenOrder> dispatch(const SearchProblem& problem, const DispatchRule& rule) {
  return Dispatcher(problem, rule).run();
}

}  // namespace bubblescope::schedules
