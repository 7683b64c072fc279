// Repeats one period of every rank.
#include "schedules/search/stretch.h"

#include <algorithm>
#include <limits>

namespace bubblescope::schedules {

namespace {

/// True if the `length` tokens from `first` on are all different.
bool is_period(const Token* first, std::int32_t length) {
  std::uint64_t seen = 0;
  for (std::int32_t at = 0; at < length; ++at) {
    const std::uint64_t bit = std::uint64_t{1} << first[at];
    if (seen & bit) return false;
    seen |= bit;
  }
  return true;
}

/// The start of the rank's period whose first op starts nearest to `moment`.
std::optional<std::int32_t> period_near(const BriefStep& brief, std::int32_t rank, Nanos moment) {
  const std::int32_t ops = brief.problem.ops_per_rank();
  const std::int32_t length = ops / brief.problem.microbatches;
  const Token* tokens = brief.order.data() + std::int64_t{rank} * ops;
  std::optional<std::int32_t> nearest;
  Nanos best_so_far = std::numeric_limits<Nanos>::max();
  for (std::int32_t at = 0; at + length <= ops; ++at) {
    const Nanos start = brief.clock.start(rank, at);
    const Nanos distance = std::max(start - moment, moment - start);
    if (distance >= best_so_far || !is_period(tokens + at, length)) continue;
    best_so_far = distance;
    nearest = at;
  }
  return nearest;
}

}  // namespace

std::optional<TokenOrder> stretch(const SearchProblem& problem, const BriefStep& brief,
                                  Nanos moment) {
  const std::int32_t ops = brief.problem.ops_per_rank();
  const std::int32_t length = ops / brief.problem.microbatches;
  TokenOrder longer;
  longer.reserve(static_cast<std::size_t>(problem.ops()));
  for (std::int32_t rank = 0; rank < problem.ranks; ++rank) {
    const Token* tokens = brief.order.data() + std::int64_t{rank} * ops;
    const auto first = period_near(brief, rank, moment);
    if (!first) return std::nullopt;
    const Token* after = tokens + *first + length;
    longer.insert(longer.end(), tokens, after);
    for (std::int32_t more = brief.problem.microbatches; more < problem.microbatches; ++more)
      longer.insert(longer.end(), after - length, after);
    longer.insert(longer.end(), after, tokens + ops);
  }
  return longer;
}

}  // namespace bubblescope::schedules
