// Compares building blocks.
#include "schedules/search/block_ranking.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace bubblescope::schedules {

namespace {

/// Six slots hold one micro-batch, so a lifespan of six slots holds one chunk.
std::int64_t longest_lifespan(const SearchProblem& problem) {
  constexpr std::int64_t kPeriod = 6;
  std::int64_t longest = std::numeric_limits<std::int32_t>::max();
  for (std::int32_t rank = 0; rank < problem.ranks; ++rank) {
    const std::int64_t chunk = memory_for_rest(problem, rank, problem.chunks - 1);
    if (chunk > 0) longest = std::min(longest, problem.cap[rank] / chunk * kPeriod);
  }
  return longest;
}

SearchProblem with_microbatches(SearchProblem problem, std::int32_t limit) {
  problem.microbatches = std::min(problem.microbatches, limit);
  return problem;
}

/// Extrapolates spans from fewer micro-batches than requested, for any number of blocks.
class Extrapolation {
 public:
  explicit Extrapolation(const SearchProblem& problem)
      : microbatches_(problem.microbatches),
        few_(with_microbatches(problem, 2 * problem.ranks)),
        more_(with_microbatches(problem, 4 * problem.ranks)),
        few_pool_(few_),
        more_pool_(more_) {}

  std::int64_t ops_per_block() const {
    const bool whole = more_.microbatches == microbatches_;
    return (whole ? more_.ops() : few_.ops() + more_.ops()) * (few_.fused ? 1 : 3);
  }

  std::optional<double> span(const BuildingBlock& block) {
    const std::optional<Score> last = offer_block(more_pool_, block);
    if (!last) return std::nullopt;
    const auto longer = static_cast<double>(last->span);
    if (more_.microbatches == microbatches_) return longer;
    const std::optional<Score> first = offer_block(few_pool_, block);
    if (!first) return std::nullopt;
    const double period =
        (longer - static_cast<double>(first->span)) / (more_.microbatches - few_.microbatches);
    return longer + period * (microbatches_ - more_.microbatches);
  }

 private:
  std::int32_t microbatches_;
  SearchProblem few_;
  SearchProblem more_;
  OrderPool few_pool_;
  OrderPool more_pool_;
};

}  // namespace

std::optional<Score> offer_block(OrderPool& pool, const BuildingBlock& block) {
  const SearchProblem& problem = pool.problem();
  const Skeleton skeleton = unroll(problem, block);
  std::optional<Score> best = pool.offer(fill_weights(problem, skeleton, 0));
  if (problem.fused) return best;
  const auto offer = [&](const std::optional<TokenOrder>& order) {
    const std::optional<Score> score = pool.offer(order);
    if (score && (!best || *score < *best)) best = score;
  };
  offer(fill_weights(problem, skeleton, std::numeric_limits<Nanos>::max()));
  offer(unroll_and_add_weights(problem, block));
  return best;
}

std::vector<BuildingBlock> find_best_blocks(const SearchProblem& problem, std::size_t wanted,
                                            std::int64_t ops) {
  Extrapolation extrapolation(problem);
  const auto tried = static_cast<std::size_t>(1 + ops / extrapolation.ops_per_block());
  std::vector<std::pair<double, BuildingBlock>> rated;
  for (BuildingBlock& block :
       select_v_blocks(problem.ranks, problem.fused, longest_lifespan(problem), tried))
    if (const std::optional<double> span = extrapolation.span(block))
      rated.push_back({*span, std::move(block)});
  std::stable_sort(rated.begin(), rated.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<BuildingBlock> best;
  for (auto& [span, block] : rated)
    if (best.size() < wanted) best.push_back(std::move(block));
  return best;
}

}  // namespace bubblescope::schedules
