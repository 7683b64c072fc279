// Times token orders.
#include "schedules/search/asap_clock.h"

#include <algorithm>

namespace bubblescope::schedules {

AsapClock::AsapClock(const SearchProblem& problem)
    : problem_(problem), ops_per_rank_(static_cast<std::size_t>(problem.ops_per_rank())) {
  const auto ranks = static_cast<std::size_t>(problem.ranks);
  const std::size_t steps = static_cast<std::size_t>(problem.stages()) * kSteps;
  const std::size_t entry = steps * static_cast<std::size_t>(problem.microbatches);
  position_.resize(ranks);
  free_.resize(ranks);
  count_.resize(steps);
  end_.resize(entry);
  place_.resize(entry);
  start_.resize(ranks * ops_per_rank_);
  microbatch_.resize(ranks * ops_per_rank_);
}

std::optional<Nanos> AsapClock::arrival(std::int32_t stage, int step,
                                        std::int32_t microbatch) const {
  const std::int32_t row = stage * kSteps + step;
  // F must precede I, and I must precede W.
  if (step != 0 && count_[row - 1] <= microbatch) return std::nullopt;
  const bool from_outside = step == 0 ? stage > 0 : step == 1 && stage + 1 < problem_.stages();
  if (!from_outside) return 0;
  const std::int32_t input = step == 0 ? row - kSteps : row + kSteps;
  if (count_[input] <= microbatch) return std::nullopt;
  const auto& latency = step == 0 ? problem_.forward_latency : problem_.backward_latency;
  return end_[static_cast<std::size_t>(input) * problem_.microbatches + microbatch] +
         latency[stage];
}

bool AsapClock::advance(const TokenOrder& order, std::int32_t rank) {
  const std::int32_t microbatches = problem_.microbatches;
  std::int32_t& position = position_[rank];
  const std::int32_t before = position;
  Nanos free = free_[rank];
  for (; position < problem_.ops_per_rank(); ++position) {
    const std::size_t at = index(rank, position);
    const Token token = order[at];
    const std::int32_t stage = problem_.stage(rank, token);
    const std::int32_t row = stage * kSteps + token % kSteps;
    const std::int32_t microbatch = count_[row];
    const std::optional<Nanos> ready = arrival(stage, token % kSteps, microbatch);
    if (!ready) break;
    const Nanos start = std::max(free, *ready);
    free = start + problem_.duration[stage][token % kSteps];
    const std::size_t entry = static_cast<std::size_t>(row) * microbatches + microbatch;
    end_[entry] = free;
    place_[entry] = static_cast<std::uint32_t>(at);
    start_[at] = start;
    microbatch_[at] = microbatch;
    ++count_[row];
  }
  free_[rank] = free;
  return position > before;
}

Score AsapClock::score() {
  Score score;
  for (std::int32_t rank = 0; rank < problem_.ranks; ++rank) {
    const Nanos span = free_[rank] - (problem_.from_step_start ? 0 : start_[index(rank, 0)]);
    score.sum += span;
    if (span > score.span) {
      score.span = span;
      longest_rank_ = rank;
    }
  }
  return score;
}

std::optional<Score> AsapClock::time(const TokenOrder& order) {
  std::fill(position_.begin(), position_.end(), 0);
  std::fill(free_.begin(), free_.end(), 0);
  std::fill(count_.begin(), count_.end(), 0);
  // Sweeps down and up follow the two directions in which data flows.
  for (bool moved = true; moved;) {
    moved = false;
    for (std::int32_t rank = 0; rank < problem_.ranks; ++rank) moved |= advance(order, rank);
    for (std::int32_t rank = problem_.ranks - 1; rank >= 0; --rank) moved |= advance(order, rank);
  }
  for (const std::int32_t position : position_)
    if (position < problem_.ops_per_rank()) return std::nullopt;
  return score();
}

std::optional<std::size_t> AsapClock::cause(const TokenOrder& order, std::size_t at) const {
  const std::size_t rank = at / ops_per_rank_;
  if (at % ops_per_rank_ > 0) {
    const std::size_t before = at - 1;
    if (start_[before] + problem_.duration_of(static_cast<std::int32_t>(rank), order[before]) ==
        start_[at])
      return before;
  }
  if (start_[at] == 0) return std::nullopt;
  const Token token = order[at];
  const std::int32_t row =
      problem_.stage(static_cast<std::int32_t>(rank), token) * kSteps + token % kSteps;
  const std::int32_t input = token % kSteps == 0 ? row - kSteps : row + kSteps;
  return place_[static_cast<std::size_t>(input) * problem_.microbatches + microbatch_[at]];
}

}  // namespace bubblescope::schedules
