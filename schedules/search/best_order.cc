// Collects candidates from several families of orders, then improves the best by local search.
#include "schedules/search/best_order.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "schedules/search/block_packing.h"
#include "schedules/search/block_ranking.h"
#include "schedules/search/cap_ladder.h"
#include "schedules/search/dispatch.h"
#include "schedules/search/fused_packing.h"
#include "schedules/search/greedy_levels.h"
#include "schedules/search/linear_skeletons.h"
#include "schedules/search/order_pool.h"
#include "schedules/search/reordered_block.h"
#include "schedules/search/stretch.h"
#include "schedules/search/twice_packed.h"
#include "schedules/search/v_skeletons.h"

namespace bubblescope::schedules {

namespace {

// Efforts are counted in timed ops; timing one takes about ten nanoseconds.
constexpr std::int64_t kBlockOps = 600'000;
constexpr std::int64_t kFollowOps = 250'000;
constexpr std::int64_t kReorderedOps = 1'500'000;
constexpr std::size_t kRules = 36;  ///< ways to follow a building block
constexpr std::size_t kMaxFollowed = 16;
constexpr std::int64_t kMaxImprovedOps = 1'000;  ///< longer steps are not improved by local search
constexpr std::int64_t kSearchPerLevel = 2'000'000;
constexpr int kAllRules = std::numeric_limits<int>::max();
constexpr Nanos kAnyIdle = std::numeric_limits<Nanos>::max();

/// Offers the V-shaped blocks of the paper, packed as its authors pack them. They do not depend on
/// the caps.
void offer_published_orders(OrderPool& pool) {
  const SearchProblem& problem = pool.problem();
  if (!is_v_placement(problem)) return;
  if (problem.fused) {
    const Skeleton packed = pack_fused_block(problem, make_fused_v_block(problem.ranks));
    pool.offer(fill_weights(problem, packed, 0));
    return;
  }
  for (const BlockShape& shape : list_published_block_shapes(problem.ranks))
    pool.offer(pack_block_twice(problem, make_v_block(shape)));
}

/// The number of micro-batches that a V needs to reach and leave its steady state.
std::int32_t brief_microbatches(const SearchProblem& problem) {
  return std::min(problem.microbatches, 2 * problem.ranks + 2);
}

/// [rank]: the maximum number of chunks that it holds while the block repeats.
std::vector<std::int32_t> steady_peaks(const BlockRows& block) {
  return peaks_of(repeat_block(block, static_cast<std::int32_t>(block.size()) + 2));
}

bool steady_state_fits(const SearchProblem& problem, const BlockRows& block) {
  const std::vector<std::int32_t> peaks = steady_peaks(block);
  for (std::int32_t rank = 0; rank < problem.ranks; ++rank)
    if (peaks[static_cast<std::size_t>(rank)] * memory_for_rest(problem, rank, 1) >
        problem.cap[rank])
      return false;
  return true;
}

/// The blocks that give the shortest brief steps: a few for each peak of the steady state. A block
/// competes only with those that a cap admits together with it, so that a larger cap drops none.
std::vector<const BlockRows*> shortest_blocks(const SearchProblem& problem,
                                              const std::vector<const BlockRows*>& blocks) {
  constexpr std::size_t kPerPeak = 3;
  SearchProblem brief = problem;
  brief.microbatches = brief_microbatches(problem);
  AsapClock clock(brief);
  std::map<std::int32_t, std::vector<std::pair<Score, const BlockRows*>>> by_peak;
  for (const BlockRows* block : blocks) {
    const std::vector<std::int32_t> peaks = steady_peaks(*block);
    auto& rated = by_peak[*std::max_element(peaks.begin(), peaks.end())];
    for (const TokenOrder& order : reorder_block(*block, brief.microbatches))
      if (const std::optional<Score> score = clock.time(order)) rated.push_back({*score, block});
  }
  std::vector<const BlockRows*> shortest;
  for (auto& [peak, rated] : by_peak) {
    std::stable_sort(rated.begin(), rated.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (std::size_t at = 0; at < std::min(kPerPeak, rated.size()); ++at)
      shortest.push_back(rated[at].second);
  }
  return shortest;
}

/// Offers the blocks of the authors' automatic schedule, reordered; they do not depend on the caps.
/// If there are too many, only a selection is tried. If the step is long, only the blocks that are
/// best in a brief step are tried.
void offer_reordered_blocks(OrderPool& pool) {
  const SearchProblem& problem = pool.problem();
  if (!is_v_placement(problem) || problem.fused || problem.ranks == 1) return;
  const std::vector<BlockRows> blocks = strided_block_rows(problem.ranks);
  const std::int32_t brief = brief_microbatches(problem);
  const std::int64_t ops = problem.ops() / problem.microbatches * brief;
  const auto affordable = static_cast<std::size_t>(1 + kReorderedOps / ops);
  const std::size_t tried = std::min(affordable, blocks.size());
  const bool is_long = brief < problem.microbatches;
  std::vector<const BlockRows*> chosen;
  for (std::size_t at = 0; at < tried; ++at) {
    const BlockRows& block = blocks[at * blocks.size() / tried];
    if (!is_long || steady_state_fits(problem, block)) chosen.push_back(&block);
  }
  if (is_long) chosen = shortest_blocks(problem, chosen);
  for (const BlockRows* block : chosen)
    for (const TokenOrder& order : reorder_block(*block, problem.microbatches)) pool.offer(order);
}

SearchPlan quick_plan(const SearchProblem& problem, std::int64_t levels_per_microbatch) {
  SearchPlan plan;
  plan.effort.climb_ops =
      problem.ops() > kMaxImprovedOps ? 0 : kSearchPerLevel / levels_per_microbatch;
  return plan;
}

class OrderSearch {
 public:
  OrderSearch(const SearchProblem& problem, const SearchPlan& plan)
      : problem_(problem),
        plan_(plan),
        pool_(problem),
        bound_(span_lower_bound(problem)),
        goal_(std::max(bound_, plan.bound)),
        is_long_(is_v_placement(problem) && problem.microbatches > brief_microbatches(problem)) {
    min_work_ = sum_work(problem, 0);
    for (std::int32_t rank = 1; rank < problem.ranks; ++rank)
      min_work_ = std::min(min_work_, sum_work(problem, rank));
  }

  /// Long V's repeat what short ones do, and for short ones everything can be tried.
  OrderPool run() && {
    const bool v = is_v_placement(problem_);
    offer_dispatched(is_light() ? 1 : kAllRules);
    const Nanos dispatched = pool_.best().score.span;
    for (const TokenOrder& order : plan_.known) pool_.offer(order);
    if (!done()) offer_greedy_orders(pool_);
    if (!plan_.is_level) offer_published_orders(pool_);
    if (problem_.chunks == 1) fill(make_linear_skeletons(problem_));
    if (v && !problem_.fused) offer_packed_published();
    if (is_long_) stretch_brief_orders();
    // If one rule comes close to the best block, other rules may be better.
    if (is_light() && dispatched - best_idle() / 4 <= pool_.best().score.span)
      offer_dispatched(kAllRules);
    if (v && !is_long_) {
      if (!problem_.fused) fill(make_v_skeletons(problem_));
      dispatch_by_blocks();
    }
    const auto climbs = static_cast<std::int64_t>(orders_for(plan_.effort.climb_ops));
    pool_.improve_all(
        {goal_, is_long_ ? climbs / 8 : climbs, plan_.effort.seed, plan_.effort.stop});
    return std::move(pool_);
  }

 private:
  /// An order of the brief step, and the time around which it is repeated.
  struct Stretched {
    Nanos span = 0;  ///< with a few micro-batches more
    const TimedOrder* order = nullptr;
    Nanos moment = 0;
  };

  /// Extends every order to a few more micro-batches by repeating it around many moments, then
  /// extends the shortest results to all micro-batches.
  void stretch_brief_orders() {
    constexpr std::size_t kStretched = 8;
    SearchProblem brief = problem_;
    brief.microbatches = brief_microbatches(problem_);
    SearchPlan plan;
    plan.effort = plan_.effort;
    plan.effort.climb_ops /= 2;
    plan.is_level = plan_.is_level;
    const OrderPool pool = OrderSearch(brief, plan).run();
    std::vector<Stretched> stretched = stretch_a_little(pool);
    std::stable_sort(stretched.begin(), stretched.end(),
                     [](const Stretched& a, const Stretched& b) { return a.span < b.span; });
    if (is_light() && stretched.size() > kStretched) stretched.resize(kStretched);
    AsapClock clock(brief);
    for (const Stretched& best : stretched) {
      clock.time(best.order->order);
      pool_.offer(stretch(problem_, {brief, best.order->order, clock}, best.moment));
    }
  }

  std::vector<Stretched> stretch_a_little(const OrderPool& pool) const {
    constexpr int kMoments = 16;
    constexpr std::int32_t kMore = 6;
    const SearchProblem& brief = pool.problem();
    SearchProblem longer = problem_;
    longer.microbatches = std::min(problem_.microbatches, brief.microbatches + kMore);
    AsapClock clock(brief);
    OrderPool longer_pool(longer);
    std::vector<Stretched> found;
    for (const TimedOrder& kept : pool.kept()) {
      clock.time(kept.order);
      for (int part = 1; part < kMoments; ++part) {
        const Nanos moment = kept.score.span / kMoments * part;
        const auto score = longer_pool.offer(stretch(longer, {brief, kept.order, clock}, moment));
        if (score) found.push_back({score->span, &kept, moment});
      }
    }
    return found;
  }

  /// Whether this is one of many searches of a long step.
  bool is_light() const { return is_long_ && plan_.is_level; }

  bool done() const {
    if (pool_.empty()) return false;
    return pool_.best().score.span <= goal_ || stopped(plan_.effort.stop);
  }
  Nanos best_idle() const { return pool_.best().score.span - min_work_; }

  /// Prefers every gradient to every forward or vice versa, and chunks nearer to the end of the
  /// model to others.
  std::vector<Token> preference(bool forward_first) const {
    std::vector<Token> tokens;
    for (const bool forward : {forward_first, !forward_first})
      for (std::int32_t chunk = problem_.chunks - 1; chunk >= 0; --chunk)
        tokens.push_back(token_of(chunk, forward ? Step::kForward : Step::kInputGrad));
    return tokens;
  }

  /// Offers list schedules of at most this many rules.
  void offer_dispatched(int max_held) {
    DispatchRule rule;
    rule.max_in_flight = problem_.microbatches;
    for (const bool forward_first : {false, true})
      for (const bool waits : {false, true})
        for (const Nanos budget : {Nanos{0}, bound_ - min_work_, kAnyIdle}) {
          if (max_held-- == 0 || done()) return;
          rule.preference = preference(forward_first);
          rule.wait_for_wanted = waits;
          rule.idle_budget = budget;
          pool_.offer(dispatch(problem_, rule));
        }
  }

  /// Returns the idle budgets to try: zero, that of the bound, fractions of the best order's, and
  /// no limit.
  std::vector<Nanos> idle_budgets() const {
    const int parts = is_light() ? 3 : 8;
    std::vector<Nanos> budgets{0, bound_ - min_work_, kAnyIdle};
    for (int part = 1; part < parts; ++part) budgets.push_back(best_idle() / parts * part);
    return budgets;
  }

  void fill(const std::vector<Skeleton>& skeletons) {
    for (const Skeleton& skeleton : skeletons)
      for (const Nanos budget : idle_budgets()) {
        if (done()) return;
        pool_.offer(fill_weights(problem_, skeleton, budget));
      }
  }

  /// The number of orders that an effort in timed ops allows.
  std::size_t orders_for(std::int64_t ops) const {
    return static_cast<std::size_t>(1 + ops / problem_.ops());
  }

  void dispatch_by_blocks() {
    if (done()) return;
    const std::size_t followed =
        std::clamp<std::size_t>(orders_for(kFollowOps) / kRules, 1, kMaxFollowed);
    for (const BuildingBlock& block : find_best_blocks(problem_, followed, kBlockOps)) {
      if (done()) return;
      offer_block(pool_, block);
      if (!problem_.fused) offer_packed(block);
      follow(turns(problem_, unroll(problem_, block)));
    }
  }

  void offer_packed_published() {
    for (const BlockShape& shape : list_published_block_shapes(problem_.ranks))
      if (!done()) offer_packed(make_v_block(shape));
  }

  /// Offers the packed block as it is, and with each W moved to where it delays nothing.
  void offer_packed(const BuildingBlock& block) {
    const TokenOrder packed = pack_block(problem_, block);
    pool_.offer(packed);
    const Skeleton skeleton = remove_weights(packed);
    for (const Nanos budget : idle_budgets()) pool_.offer(fill_weights(problem_, skeleton, budget));
  }

  /// Offers orders in which ranks run ahead of the block by various amounts. This fills the slots
  /// that a block leaves empty in the warm-up and the cool-down.
  void follow(std::vector<std::int32_t> turns) {
    DispatchRule rule;
    rule.preference = preference(false);
    rule.max_in_flight = problem_.microbatches;
    rule.turn = std::move(turns);
    for (const std::int32_t window : {1, 2, 3, 6, 12, 4 * problem_.microbatches})
      for (const bool waits : {false, true})
        for (const Nanos budget : {Nanos{0}, best_idle() / 2, kAnyIdle}) {
          if (done()) return;
          rule.window = window;
          rule.wait_for_wanted = waits;
          rule.idle_budget = budget;
          pool_.offer(dispatch(problem_, rule));
        }
  }

  const SearchProblem& problem_;
  const SearchPlan& plan_;
  OrderPool pool_;
  Nanos bound_;
  Nanos goal_;
  bool is_long_;  ///< whether a V is searched through a brief step
  Nanos min_work_ = 0;
};

}  // namespace

Nanos span_lower_bound(const SearchProblem& problem) {
  Nanos bound = 0;
  Nanos response_time = 0;  // time from the end of the rank's first F to its first gradient
  for (std::int32_t rank = problem.ranks - 1; rank >= 0; --rank) {
    Nanos span = sum_work(problem, rank);
    if (problem.chunks == 1) {
      std::int64_t max_held = problem.microbatches;
      if (problem.memory[rank][0] > 0)
        max_held = std::min(max_held, problem.cap[rank] / problem.memory[rank][0]);
      span += std::max(Nanos{0}, response_time - (max_held - 1) * problem.duration[rank][0]);
      response_time += problem.duration[rank][0] + problem.duration[rank][1] +
                       problem.forward_latency[rank] +
                       (rank > 0 ? problem.backward_latency[rank - 1] : 0);
    }
    bound = std::max(bound, span);
  }
  return bound;
}

OrderPool search_orders(const SearchProblem& problem, const SearchPlan& plan) {
  return OrderSearch(problem, plan).run();
}

TokenOrder find_best_order(const SearchProblem& problem) {
  OrderPool pool(problem);
  // Nearly every order holds an amount of bytes of its own, so levels in between are not tried.
  CapLadder ladder(problem, problem.in_bytes ? 1 : CapLadder::kMaxLevels);
  SearchPlan plan = quick_plan(problem, ladder.levels_per_microbatch());
  plan.is_level = true;
  const Nanos bound = span_lower_bound(problem);
  while (const std::optional<SearchProblem> level = ladder.next()) {
    if (!pool.empty() &&
        (pool.best().score.span <= bound || !may_be_shorter(*level, pool.best().score.span)))
      break;
    const OrderPool found = search_orders(*level, plan);
    for (const TimedOrder& kept : found.kept()) pool.offer(kept.order);
  }
  offer_published_orders(pool);
  if (pool.best().score.span > bound) offer_reordered_blocks(pool);
  if (ladder.skips_levels() && !problem.in_bytes) offer_greedy_orders_of_all_levels(pool);
  return pool.best().order;
}

TokenOrder find_best_order_under_caps(const SearchProblem& problem) {
  return search_orders(problem, quick_plan(problem, 1)).best().order;
}

}  // namespace bubblescope::schedules
