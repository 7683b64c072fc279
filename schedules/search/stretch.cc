// Repeating one period of every rank.
#include "schedules/search/stretch.h"

#include <algorithm>
#include <limits>

namespace bubblescope {

namespace {

/// True if the `length` tokens from `first` on are all different.
bool is_period(const Token* first, std::int32_t length) {
  std::uint32_t seen = 0;
  for (std::int32_t at = 0; at < length; ++at) {
    const std::uint32_t bit = 1u << first[at];
    if (seen & bit) return false;
    seen |= bit;
  }
  return true;
}

/// Where the rank's period starts whose first op starts nearest to a moment.
std::optional<std::int32_t> period_near(const SearchProblem& brief, const Token* tokens,
                                        const AsapClock& clock, std::int32_t rank, Nanos moment) {
  const std::int32_t length = brief.ops_per_rank() / brief.microbatches;
  std::optional<std::int32_t> nearest;
  Nanos least = std::numeric_limits<Nanos>::max();
  for (std::int32_t at = 0; at + length <= brief.ops_per_rank(); ++at) {
    const Nanos start = clock.start(rank, at);
    const Nanos distance = std::max(start - moment, moment - start);
    if (distance >= least || !is_period(tokens + at, length)) continue;
    least = distance;
    nearest = at;
  }
  return nearest;
}

}  // namespace

std::optional<TokenOrder> stretch(const SearchProblem& problem, const SearchProblem& brief,
                                  const TokenOrder& order, const AsapClock& clock, Nanos moment) {
  const std::int32_t length = brief.ops_per_rank() / brief.microbatches;
  TokenOrder longer;
  longer.reserve(static_cast<std::size_t>(problem.ops()));
  for (std::int32_t rank = 0; rank < brief.ranks; ++rank) {
    const Token* tokens = order.data() + std::int64_t{rank} * brief.ops_per_rank();
    const auto first = period_near(brief, tokens, clock, rank, moment);
    if (!first) return std::nullopt;
    const Token* after = tokens + *first + length;
    longer.insert(longer.end(), tokens, after);
    for (std::int32_t more = brief.microbatches; more < problem.microbatches; ++more)
      longer.insert(longer.end(), after - length, after);
    longer.insert(longer.end(), after, tokens + brief.ops_per_rank());
  }
  return longer;
}

}  // namespace bubblescope
