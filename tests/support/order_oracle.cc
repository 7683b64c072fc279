// Depth-first search, one op at a time, in any interleaving of the ranks.
#include "tests/support/order_oracle.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <vector>

namespace bubblescope::tests {

namespace {

class Trial {
 public:
  explicit Trial(const schedules::SearchProblem& problem)
      : problem_(problem),
        count_(static_cast<std::size_t>(problem.stages()) * schedules::kSteps, 0),
        end_(count_.size() * static_cast<std::size_t>(problem.microbatches), 0),
        free_(static_cast<std::size_t>(problem.ranks), 0),
        held_(free_.size(), 0),
        first_(free_.size()),
        work_left_(free_.size(), 0) {
    for (std::int32_t rank = 0; rank < problem.ranks; ++rank)
      for (std::int32_t token = 0; token < problem.tokens(); ++token)
        if (!problem.fused || schedules::step_of(static_cast<schedules::Token>(token)) !=
                                  schedules::Step::kWeightGrad)
          work_left_[rank] += problem.microbatches *
                              problem.duration_of(rank, static_cast<schedules::Token>(token));
  }

  Nanos run() {
    extend(problem_.ops());
    return best_;
  }

 private:
  std::size_t row(std::int32_t rank, schedules::Token token) const {
    return static_cast<std::size_t>(problem_.stage(rank, token)) * schedules::kSteps +
           token % schedules::kSteps;
  }
  Nanos& end_of(std::size_t row, std::int32_t microbatch) {
    return end_[row * static_cast<std::size_t>(problem_.microbatches) +
                static_cast<std::size_t>(microbatch)];
  }

  /// A lower bound: every rank runs the rest of its ops without a wait.
  Nanos value() const {
    Nanos most = 0;
    for (std::size_t rank = 0; rank < free_.size(); ++rank) {
      const Nanos start = problem_.from_step_start ? 0 : first_[rank].value_or(free_[rank]);
      most = std::max(most, free_[rank] + work_left_[rank] - start);
    }
    return most;
  }

  std::optional<Nanos> ready(std::int32_t rank, schedules::Token token) {
    const std::size_t own = row(rank, token);
    const std::int32_t next = count_[own];
    if (next == problem_.microbatches) return std::nullopt;
    if (problem_.fused && schedules::step_of(token) == schedules::Step::kWeightGrad)
      return std::nullopt;
    if (held_[rank] + problem_.memory_of(rank, token) > problem_.cap[rank]) return std::nullopt;
    if (token % schedules::kSteps > 0 && count_[own - 1] <= next) return std::nullopt;
    const std::int32_t stage = problem_.stage(rank, token);
    if (schedules::step_of(token) == schedules::Step::kForward && stage > 0) {
      if (count_[own - schedules::kSteps] <= next) return std::nullopt;
      return end_of(own - schedules::kSteps, next) + problem_.forward_latency[stage];
    }
    if (schedules::step_of(token) == schedules::Step::kInputGrad && stage + 1 < problem_.stages()) {
      if (count_[own + schedules::kSteps] <= next) return std::nullopt;
      return end_of(own + schedules::kSteps, next) + problem_.backward_latency[stage];
    }
    return 0;
  }

  /// False if another prefix with the same ops had no later results.
  bool is_new() {
    std::vector<Nanos> times = free_;
    for (std::size_t row = 0; row < count_.size(); ++row)
      for (std::int32_t n = 0; n < count_[row]; ++n) times.push_back(end_of(row, n));
    for (const auto& first : first_) times.push_back(-first.value_or(0));
    std::vector<std::vector<Nanos>>& known = known_[count_];
    for (const std::vector<Nanos>& other : known)
      if (std::equal(other.begin(), other.end(), times.begin(),
                     [](Nanos a, Nanos b) { return a <= b; }))
        return false;
    known.push_back(std::move(times));
    return true;
  }

  void extend(std::int64_t left) {
    if (value() >= best_ || !is_new()) return;
    if (left == 0) {
      best_ = value();
      return;
    }
    for (std::int32_t rank = 0; rank < problem_.ranks; ++rank)
      for (std::int32_t token = 0; token < problem_.tokens(); ++token)
        if (const auto time = ready(rank, static_cast<schedules::Token>(token)))
          run_op(rank, static_cast<schedules::Token>(token), *time, left);
  }

  void run_op(std::int32_t rank, schedules::Token token, Nanos ready, std::int64_t left) {
    const std::size_t own = row(rank, token);
    const Nanos free = free_[rank];
    const std::optional<Nanos> first = first_[rank];
    const Nanos start = std::max(free, ready);
    if (!first) first_[rank] = start;
    free_[rank] = end_of(own, count_[own]++) = start + problem_.duration_of(rank, token);
    held_[rank] += problem_.memory_of(rank, token);
    work_left_[rank] -= problem_.duration_of(rank, token);
    extend(left - 1);
    work_left_[rank] += problem_.duration_of(rank, token);
    held_[rank] -= problem_.memory_of(rank, token);
    --count_[own];
    free_[rank] = free;
    first_[rank] = first;
  }

  const schedules::SearchProblem& problem_;
  std::vector<std::int32_t> count_;
  std::vector<Nanos> end_;
  std::vector<Nanos> free_;
  std::vector<std::int64_t> held_;
  std::vector<std::optional<Nanos>> first_;
  std::vector<Nanos> work_left_;  ///< [rank]
  std::map<std::vector<std::int32_t>, std::vector<std::vector<Nanos>>> known_;
  Nanos best_ = std::numeric_limits<Nanos>::max();
};

}  // namespace

Nanos shortest_by_trying(const schedules::SearchProblem& problem) { return Trial(problem).run(); }

}  // namespace bubblescope::tests
