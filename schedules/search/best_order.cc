// Collects candidates from several families of orders, then improves the best by local search.
#include "schedules/search/best_order.h"

#include <algorithm>
#include <limits>
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

namespace bubblescope {

namespace {

// Efforts in timed ops; one takes about ten nanoseconds.
constexpr std::int64_t kBlockOps = 600'000;
constexpr std::int64_t kFollowOps = 250'000;
constexpr std::int64_t kReorderedOps = 10'000'000;
constexpr std::size_t kRules = 36;  ///< ways to follow a building block
constexpr std::size_t kMostFollowed = 16;
constexpr std::int64_t kMostClimbedOps = 1'000;  ///< longer steps are not improved by local search
constexpr std::int64_t kClimbPerLevel = 2'000'000;
constexpr Nanos kAnyIdle = std::numeric_limits<Nanos>::max();

/// Offers the paper's own V-shaped blocks, packed as its authors do it: the same under all caps.
void offer_published_orders(OrderPool& pool) {
  const SearchProblem& problem = pool.problem();
  if (!lies_in_v(problem)) return;
  if (problem.fused) {
    const Skeleton packed = packed_fused_order(problem, fused_v_block(problem.ranks));
    pool.offer(fill_weights(problem, packed, 0));
    return;
  }
  for (const BlockShape& shape : published_block_shapes(problem.ranks))
    pool.offer(twice_packed_order(problem, v_block(shape)));
}

/// Offers the reordered blocks that the authors' automatic schedule tries: the same under all caps.
/// If they are too many, only a selection.
void offer_reordered_blocks(OrderPool& pool) {
  const SearchProblem& problem = pool.problem();
  if (!lies_in_v(problem) || problem.fused || problem.ranks == 1) return;
  const std::vector<BlockRows> blocks = paced_block_rows(problem.ranks);
  const auto affordable = static_cast<std::size_t>(1 + kReorderedOps / problem.ops());
  const std::size_t tried = std::min(affordable, blocks.size());
  for (std::size_t at = 0; at < tried; ++at)
    for (const TokenOrder& order :
         reordered_orders(blocks[at * blocks.size() / tried], problem.microbatches))
      pool.offer(order);
}

SearchPlan quick_plan(const SearchProblem& problem, std::int64_t levels_per_forward) {
  SearchPlan plan;
  plan.effort.climb_ops = problem.ops() > kMostClimbedOps ? 0 : kClimbPerLevel / levels_per_forward;
  return plan;
}

class OrderSearch {
 public:
  OrderSearch(const SearchProblem& problem, const SearchPlan& plan)
      : problem_(problem),
        plan_(plan),
        pool_(problem),
        bound_(least_span(problem)),
        goal_(std::max(bound_, plan.bound)) {
    least_work_ = work_of(problem, 0);
    for (std::int32_t rank = 1; rank < problem.ranks; ++rank)
      least_work_ = std::min(least_work_, work_of(problem, rank));
  }

  /// Long V's repeat what short ones do, for which everything can be tried.
  OrderPool run() && {
    const bool v = lies_in_v(problem_);
    const bool long_v = v && problem_.microbatches > brief_microbatches();
    dispatch_freely();
    for (const TokenOrder& order : plan_.known) pool_.offer(order);
    offer_greedy_orders(pool_);
    offer_published_orders(pool_);
    if (problem_.chunks == 1) fill(linear_skeletons(problem_));
    if (v && !problem_.fused) pack_published_blocks();
    if (long_v) stretch_brief_orders();
    if (v && !long_v) {
      if (!problem_.fused) fill(v_skeletons(problem_));
      follow_building_blocks();
    }
    const auto climbs = static_cast<std::int64_t>(orders_for(plan_.effort.climb_ops));
    pool_.improve_all({goal_, long_v ? climbs / 8 : climbs, plan_.effort.seed, plan_.effort.stop});
    return std::move(pool_);
  }

 private:
  /// Enough micro-batches to reach the steady state and to leave it.
  std::int32_t brief_microbatches() const { return 2 * problem_.ranks + 2; }

  void stretch_brief_orders() {
    constexpr int kMoments = 16;
    SearchProblem brief = problem_;
    brief.microbatches = brief_microbatches();
    SearchPlan plan;
    plan.effort = plan_.effort;
    plan.effort.climb_ops /= 2;
    AsapClock clock(brief);
    const OrderPool pool = OrderSearch(brief, plan).run();
    for (const TimedOrder& kept : pool.kept()) {
      clock.time(kept.order);
      for (int moment = 1; moment < kMoments; ++moment)
        pool_.offer(
            stretch(problem_, {brief, kept.order, clock}, kept.score.span / kMoments * moment));
    }
  }

  bool done() const {
    if (pool_.empty()) return false;
    return pool_.best().score.span <= goal_ || stopped(plan_.effort.stop);
  }
  Nanos best_idle() const { return pool_.best().score.span - least_work_; }

  /// Every gradient before every forward or vice versa; chunks nearer to the end of the model
  /// first.
  std::vector<Token> preference(bool forward_first) const {
    std::vector<Token> tokens;
    for (const bool forward : {forward_first, !forward_first})
      for (std::int32_t chunk = problem_.chunks - 1; chunk >= 0; --chunk)
        tokens.push_back(token_of(chunk, forward ? Step::kForward : Step::kInputGrad));
    return tokens;
  }

  void dispatch_freely() {
    DispatchRule rule;
    rule.most_in_flight = problem_.microbatches;
    for (const bool forward_first : {false, true})
      for (const bool patient : {false, true})
        for (const Nanos budget : {Nanos{0}, bound_ - least_work_, kAnyIdle}) {
          if (done()) return;
          rule.preference = preference(forward_first);
          rule.wait_for_wanted = patient;
          rule.idle_budget = budget;
          pool_.offer(dispatch(problem_, rule));
        }
  }

  /// Idle budgets from zero, over the bound's, to the best order's, and without limit.
  std::vector<Nanos> idle_budgets() const {
    constexpr int kParts = 8;
    std::vector<Nanos> budgets{0, bound_ - least_work_, kAnyIdle};
    for (int part = 1; part < kParts; ++part) budgets.push_back(best_idle() / kParts * part);
    return budgets;
  }

  void fill(const std::vector<Skeleton>& skeletons) {
    for (const Skeleton& skeleton : skeletons)
      for (const Nanos budget : idle_budgets()) {
        if (done()) return;
        pool_.offer(fill_weights(problem_, skeleton, budget));
      }
  }

  /// Converts an effort in timed ops to a number of orders.
  std::size_t orders_for(std::int64_t ops) const {
    return static_cast<std::size_t>(1 + ops / problem_.ops());
  }

  void follow_building_blocks() {
    if (done()) return;
    const std::size_t followed =
        std::clamp<std::size_t>(orders_for(kFollowOps) / kRules, 1, kMostFollowed);
    for (const BuildingBlock& block : best_blocks(problem_, followed, kBlockOps)) {
      if (done()) return;
      offer_block(pool_, block);
      if (!problem_.fused) offer_packed(block);
      follow(turns(problem_, unroll(problem_, block)));
    }
  }

  void pack_published_blocks() {
    for (const BlockShape& shape : published_block_shapes(problem_.ranks))
      if (!done()) offer_packed(v_block(shape));
  }

  /// Offers the packed block as it is, and with the W where they delay nothing.
  void offer_packed(const BuildingBlock& block) {
    const TokenOrder packed = packed_order(problem_, block);
    pool_.offer(packed);
    const Skeleton skeleton = without_weights(packed);
    for (const Nanos budget : idle_budgets()) pool_.offer(fill_weights(problem_, skeleton, budget));
  }

  /// Lets ranks run ahead of the block, a little or a lot. This packs the warm-up and the
  /// cool-down, in which a block leaves slots empty.
  void follow(std::vector<std::int32_t> turns) {
    DispatchRule rule;
    rule.preference = preference(false);
    rule.most_in_flight = problem_.microbatches;
    rule.turn = std::move(turns);
    for (const std::int32_t window : {1, 2, 3, 6, 12, 4 * problem_.microbatches})
      for (const bool patient : {false, true})
        for (const Nanos budget : {Nanos{0}, best_idle() / 2, kAnyIdle}) {
          if (done()) return;
          rule.window = window;
          rule.wait_for_wanted = patient;
          rule.idle_budget = budget;
          pool_.offer(dispatch(problem_, rule));
        }
  }

  const SearchProblem& problem_;
  const SearchPlan& plan_;
  OrderPool pool_;
  Nanos bound_;
  Nanos goal_;
  Nanos least_work_ = 0;
};

}  // namespace

Nanos least_span(const SearchProblem& problem) {
  Nanos bound = 0;
  Nanos beyond = 0;  // time from the end of the rank's first F to its first gradient
  for (std::int32_t rank = problem.ranks - 1; rank >= 0; --rank) {
    Nanos span = work_of(problem, rank);
    if (problem.chunks == 1) {
      std::int64_t most = problem.microbatches;
      if (problem.memory[rank][0] > 0)
        most = std::min(most, problem.cap[rank] / problem.memory[rank][0]);
      span += std::max(Nanos{0}, beyond - (most - 1) * problem.duration[rank][0]);
      beyond += problem.duration[rank][0] + problem.duration[rank][1] +
                problem.forward_latency[rank] + (rank > 0 ? problem.backward_latency[rank - 1] : 0);
    }
    bound = std::max(bound, span);
  }
  return bound;
}

OrderPool search_orders(const SearchProblem& problem, const SearchPlan& plan) {
  return OrderSearch(problem, plan).run();
}

TokenOrder best_order(const SearchProblem& problem) {
  OrderPool pool(problem);
  CapLadder ladder(problem);
  const SearchPlan plan = quick_plan(problem, ladder.levels_per_forward());
  const Nanos bound = least_span(problem);
  while (const std::optional<SearchProblem> level = ladder.next()) {
    if (!pool.empty() &&
        (pool.best().score.span <= bound || !may_be_shorter(*level, pool.best().score.span)))
      break;
    const OrderPool found = search_orders(*level, plan);
    for (const TimedOrder& kept : found.kept()) pool.offer(kept.order);
  }
  offer_published_orders(pool);
  if (pool.best().score.span > bound) offer_reordered_blocks(pool);
  if (ladder.skips_levels()) offer_greedy_orders_of_all_levels(pool);
  return pool.best().order;
}

TokenOrder best_order_under_its_caps(const SearchProblem& problem) {
  return search_orders(problem, quick_plan(problem, 1)).best().order;
}

}  // namespace bubblescope
