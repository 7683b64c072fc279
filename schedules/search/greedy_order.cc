// Implements the state that greedy heuristics share.
#include "schedules/search/greedy_order.h"

#include <algorithm>
#include <utility>

namespace bubblescope::schedules {

GreedyPrefix::GreedyPrefix(const SearchProblem& problem)
    : problem_(problem),
      ranks_(static_cast<std::size_t>(problem.ranks)),
      weights_(ranks_.size()),
      count_(static_cast<std::size_t>(problem.stages()) * kSteps, 0),
      end_(count_.size() * static_cast<std::size_t>(problem.microbatches)),
      written_(ranks_.size(), 0),
      order_(static_cast<std::size_t>(problem.ops())) {
  for (Weights& weights : weights_)
    weights.due.reserve(static_cast<std::size_t>(problem.chunks) *
                        static_cast<std::size_t>(problem.microbatches));
}

std::optional<Nanos> GreedyPrefix::arrival(std::int32_t rank, Token token) const {
  const std::int32_t stage = problem_.stage(rank, token);
  const Step step = step_of(token);
  const bool forward = step == Step::kForward;
  if (step == Step::kWeightGrad || stage == (forward ? 0 : problem_.stages() - 1)) return 0;
  const std::size_t own = row(rank, token);
  const std::size_t input = forward ? own - kSteps : own + kSteps;
  if (count_[input] <= count_[own]) return std::nullopt;
  if (problem_.rank_of_stage[input / kSteps] == rank) return 0;
  const Nanos latency = (forward ? problem_.forward_latency : problem_.backward_latency)[stage];
  return end_[made(input, count_[own])] + latency;
}

bool GreedyPrefix::fits(std::int32_t rank, std::int64_t held) {
  if (held > problem_.cap[rank]) return false;
  max_fitted_ = std::max(max_fitted_, held);
  return true;
}

bool GreedyPrefix::put(std::int32_t rank, Token token) {
  if (!has_left(rank, token)) return false;
  const std::size_t own = row(rank, token);
  if (step_of(token) != Step::kForward && count_[own - 1] <= count_[own]) return false;
  const std::optional<Nanos> ready = arrival(rank, token);
  Rank& state = ranks_[rank];
  if (!ready || !fits(rank, state.held + problem_.memory_of(rank, token))) return false;
  const Nanos start = std::max(state.free, *ready);
  if (written_[rank] > 0) state.idle += start - state.free;
  max_idle_ = std::max(max_idle_, state.idle);
  state.free = start + problem_.duration_of(rank, token);
  state.held += problem_.memory_of(rank, token);
  end_[made(own, count_[own]++)] = state.free;
  order_[static_cast<std::size_t>(rank) * problem_.ops_per_rank() + written_[rank]++] = token;
  if (step_of(token) == Step::kInputGrad)
    weights_[rank].due.push_back(static_cast<Token>(token + 1));
  return true;
}

bool GreedyPrefix::free_memory(std::int32_t rank, Token token) {
  while (!fits(rank, at(rank).held + problem_.memory_of(rank, token))) {
    if (pending(rank) == 0) return false;
    run_weight(rank);
  }
  return true;
}

bool GreedyPrefix::fill_wait(std::int32_t rank, Nanos ready) {
  const auto next_duration = [&] {
    const Weights& own = weights_[rank];
    return problem_.duration_of(rank, own.due[own.run]);
  };
  while (pending(rank) > 0 && at(rank).free + next_duration() <= ready) run_weight(rank);
  return pending(rank) > 0 && at(rank).free < ready;
}

void GreedyPrefix::run_weight(std::int32_t rank) {
  Weights& own = weights_[rank];
  put(rank, own.due[own.run++]);
}

void GreedyPrefix::run_all_weights(std::int32_t rank) {
  while (pending(rank) > 0) run_weight(rank);
}

GreedyOrder GreedyPrefix::finish(bool complete) && {
  GreedyOrder found;
  if (complete) found.order = std::move(order_);
  found.max_fitted = max_fitted_;
  return found;
}

}  // namespace bubblescope::schedules
