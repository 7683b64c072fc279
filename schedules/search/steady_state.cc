// Measures the periods of repeated orders.
#include "schedules/search/steady_state.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "schedules/search/best_order.h"
#include "schedules/search/stretch.h"

namespace bubblescope::schedules {

namespace {

constexpr std::int32_t kMoments = 24;
constexpr std::int32_t kMeasured = 12;  ///< micro-batches over which a period is measured

SearchProblem with_microbatches(const SearchProblem& problem, std::int32_t microbatches) {
  SearchProblem other = problem;
  other.microbatches = microbatches;
  return other;
}

/// Repeats an order of a brief step until it has settled, and for some micro-batches more.
class PeriodMeter {
 public:
  PeriodMeter(const SearchProblem& problem, const SearchProblem& brief)
      : problem_(problem),
        settled_(with_microbatches(problem, brief.microbatches + 8 * problem.ranks)),
        longer_(with_microbatches(problem, settled_.microbatches + kMeasured)),
        clock_(problem_),
        settled_clock_(settled_),
        longer_clock_(longer_) {}

  /// The stretched order with its period; empty if it does not repeat within the caps.
  std::optional<SteadyOrder> measure(const BriefStep& brief, Nanos moment) {
    const std::optional<Nanos> settled = time(settled_, settled_clock_, brief, moment);
    const std::optional<Nanos> longer = time(longer_, longer_clock_, brief, moment);
    std::optional<TokenOrder> order = stretch(problem_, brief, moment);
    if (!settled || !longer || !order || !fits_everywhere(problem_, *order) || !clock_.time(*order))
      return std::nullopt;
    return SteadyOrder{std::move(*order), (*longer - *settled + kMeasured - 1) / kMeasured, 0};
  }

 private:
  static std::optional<Nanos> time(const SearchProblem& problem, AsapClock& clock,
                                   const BriefStep& brief, Nanos moment) {
    const std::optional<TokenOrder> order = stretch(problem, brief, moment);
    if (!order || !fits_everywhere(problem, *order)) return std::nullopt;
    const std::optional<Score> score = clock.time(*order);
    return score ? std::optional(score->span) : std::nullopt;
  }

  const SearchProblem& problem_;
  SearchProblem settled_;
  SearchProblem longer_;
  AsapClock clock_;
  AsapClock settled_clock_;
  AsapClock longer_clock_;
};

}  // namespace

Nanos period_lower_bound(const SearchProblem& problem) {
  std::vector<Nanos> work(static_cast<std::size_t>(problem.ranks), 0);
  std::vector<std::int64_t> held(work.size(), 0);  // memory times time, per micro-batch
  Nanos round_trip = 0;  // minimum time from the start of a stage's F to the end of its I
  for (std::int32_t stage = problem.stages(); stage-- > 0;) {
    const auto& [forward, input_grad, weight_grad] = problem.duration[stage];
    const std::int32_t rank = problem.rank_of_stage[stage];
    const Nanos own_weight_grad = problem.fused ? 0 : weight_grad;
    if (stage + 1 < problem.stages())
      round_trip += problem.forward_latency[stage + 1] + problem.backward_latency[stage];
    round_trip += forward + input_grad;
    work[rank] += forward + input_grad + own_weight_grad;
    held[rank] -= problem.memory[stage][1] * round_trip;
    if (!problem.fused) held[rank] -= problem.memory[stage][2] * (round_trip + own_weight_grad);
  }
  Nanos period = 0;
  for (std::size_t rank = 0; rank < work.size(); ++rank)
    period = std::max({period, work[rank],
                       problem.cap[rank] == 0 ? 0 : (held[rank] - 1) / problem.cap[rank] + 1});
  return period;
}

SearchProblem make_brief_step(const SearchProblem& problem) {
  return with_microbatches(problem, std::min(problem.microbatches, 2 * problem.ranks + 2));
}

SteadyOrder find_steady_order(const SearchProblem& problem, std::vector<TokenOrder> known,
                              const SearchEffort& effort) {
  const SearchProblem brief = make_brief_step(problem);
  const OrderPool pool = search_orders(brief, {effort, 0, std::move(known)});
  PeriodMeter meter(problem, brief);
  AsapClock clock(brief);
  std::optional<SteadyOrder> best;
  for (const TimedOrder& kept : pool.kept()) {
    clock.time(kept.order);
    for (std::int32_t moment = 1; moment < kMoments; ++moment) {
      std::optional<SteadyOrder> steady =
          meter.measure({brief, kept.order, clock}, kept.score.span / kMoments * moment);
      if (steady && (!best || steady->period < best->period)) best = std::move(steady);
    }
  }
  // Nothing repeats, so whole steps follow each other.
  if (!best) {
    const TimedOrder step = search_orders(problem, {effort}).best();
    best = SteadyOrder{step.order, (step.score.span - 1) / problem.microbatches + 1, 0};
  }
  best->bound = period_lower_bound(problem);
  return std::move(*best);
}

}  // namespace bubblescope::schedules
