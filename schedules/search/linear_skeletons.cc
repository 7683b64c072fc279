// Builds warm-ups for linear placements.
#include "schedules/search/linear_skeletons.h"

#include <algorithm>

namespace bubblescope::schedules {

namespace {

constexpr int kShares = 16;       ///< warm-ups between 1F1B's and the longest
constexpr int kFittingShare = 8;  ///< the share that ends when the first gradient arrives

/// Returns for each rank a lower bound on the time from the end of its first F to the arrival of
/// its first gradient. The unit is the forward of the slowest stage up to there, which limits the
/// rate of later F's.
std::vector<double> forwards_before_gradient(const SearchProblem& problem) {
  std::vector<double> forwards;
  Nanos slowest_forward = 1;
  Nanos response_time = 0;
  for (std::int32_t stage = 1; stage < problem.ranks; ++stage)
    response_time += problem.duration[stage][0] + problem.duration[stage][1] +
                     problem.forward_latency[stage] + problem.backward_latency[stage - 1];
  for (std::int32_t stage = 0; stage < problem.ranks; ++stage) {
    slowest_forward = std::max(slowest_forward, problem.duration[stage][0]);
    forwards.push_back(static_cast<double>(response_time) / static_cast<double>(slowest_forward));
    if (stage + 1 < problem.ranks)
      response_time -= problem.duration[stage + 1][0] + problem.duration[stage + 1][1] +
                       problem.forward_latency[stage + 1] + problem.backward_latency[stage];
  }
  return forwards;
}

std::int32_t max_forwards(const SearchProblem& problem, std::int32_t rank) {
  const std::int64_t each = problem.memory[rank][0];
  if (each <= 0) return problem.microbatches;
  return static_cast<std::int32_t>(
      std::clamp<std::int64_t>(problem.cap[rank] / each, 1, problem.microbatches));
}

void append_rank(Skeleton& skeleton, std::int32_t warmup, std::int32_t microbatches) {
  constexpr Token kForwardToken = 0;
  constexpr Token kGradientToken = 1;
  skeleton.insert(skeleton.end(), static_cast<std::size_t>(warmup), kForwardToken);
  for (std::int32_t gradient = 0; gradient < microbatches; ++gradient) {
    skeleton.push_back(kGradientToken);
    if (warmup + gradient < microbatches) skeleton.push_back(kForwardToken);
  }
}

}  // namespace

std::vector<Skeleton> make_linear_skeletons(const SearchProblem& problem) {
  const std::vector<double> room = forwards_before_gradient(problem);
  std::vector<Skeleton> skeletons;
  for (int share = 0; share <= kShares; ++share) {
    Skeleton skeleton;
    for (std::int32_t rank = 0; rank < problem.ranks; ++rank) {
      const double min_warmup = problem.ranks - 1 - rank;
      const double wanted = 1 + min_warmup + (room[rank] - min_warmup) * share / kFittingShare;
      const double max_warmup = max_forwards(problem, rank);
      append_rank(skeleton, static_cast<std::int32_t>(std::clamp(wanted, 1.0, max_warmup)),
                  problem.microbatches);
    }
    if (skeletons.empty() || skeleton != skeletons.back()) skeletons.push_back(std::move(skeleton));
  }
  return skeletons;
}

}  // namespace bubblescope::schedules
