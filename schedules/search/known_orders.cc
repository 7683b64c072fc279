// Converts schedules to token orders.
#include "schedules/search/known_orders.h"

#include <optional>
#include <utility>

#include "schedules/search/best_order.h"
#include "sim/model/schedule_refusal.h"

namespace bubblescope::schedules {

namespace {

/// Returns the tokens for one op of a schedule: two for a full backward that is to be split, none
/// for a W that is to be part of its I, and one for any other op.
std::vector<Token> tokens_of(const Op& op, std::int32_t chunk, bool fused) {
  std::vector<Token> tokens;
  if (op.kind == OpKind::kForward) tokens.push_back(token_of(chunk, Step::kForward));
  if (gives_input_grad(op.kind)) tokens.push_back(token_of(chunk, Step::kInputGrad));
  if (makes_weight_grad(op.kind) && !fused) tokens.push_back(token_of(chunk, Step::kWeightGrad));
  return tokens;
}

/// Empty if a token's micro-batches are not in order, or if ops are missing.
std::optional<TokenOrder> order_of(const SearchProblem& problem, const Schedule& schedule) {
  const std::vector<std::int32_t> chunks = chunk_of_stage(schedule);
  TokenOrder order;
  order.reserve(static_cast<std::size_t>(problem.ops()));
  for (const RankOrder& ops : schedule.order) {
    std::vector<std::int32_t> next(static_cast<std::size_t>(problem.tokens()), 0);
    const std::size_t begin = order.size();
    for (const Op& op : ops)
      for (const Token token :
           tokens_of(op, chunks[static_cast<std::size_t>(op.stage)], problem.fused)) {
        if (next[token]++ != op.microbatch) return std::nullopt;
        order.push_back(token);
      }
    if (order.size() - begin != static_cast<std::size_t>(problem.ops_per_rank()))
      return std::nullopt;
  }
  return order;
}

}  // namespace

std::vector<TokenOrder> collect_searched_orders(const SearchProblem& problem,
                                                const ScheduleRequest& request,
                                                SearchedUnder caps) {
  if (problem.chunks > 2 ||
      problem.rank_of_stage != zigzag_placement(problem.ranks, problem.chunks))
    return {};
  std::vector<TokenOrder> orders;
  for (const ScheduleDef& def : Registry<ScheduleDef>::instance().all()) {
    if (!def.reads_costs || def.splits_output_layer || def.implied_chunks != problem.chunks)
      continue;
    if (caps == SearchedUnder::kOwnCaps && searches_under_caps(def, request)) continue;
    if (!refuse_schedule(def, request).empty()) continue;
    if (std::optional<TokenOrder> order = order_of(problem, build_schedule(def, request)))
      orders.push_back(std::move(*order));
  }
  return orders;
}

std::vector<TokenOrder> collect_known_orders(const SearchProblem& problem,
                                             const ScheduleRequest& request) {
  ScheduleRequest shape_only;
  shape_only.shape = request.shape;
  shape_only.shape.chunks = problem.chunks;
  std::vector<TokenOrder> orders;
  for (const ScheduleDef& def : Registry<ScheduleDef>::instance().all()) {
    if (def.reads_costs || !refuse_schedule(def, shape_only).empty()) continue;
    const Schedule schedule = build_schedule(def, shape_only);
    if (schedule.rank_of_stage != problem.rank_of_stage || schedule.forward_only ||
        schedule.pipelines > 1 || !schedule.weights.empty())
      continue;
    if (std::optional<TokenOrder> order = order_of(problem, schedule))
      orders.push_back(std::move(*order));
  }
  return orders;
}

}  // namespace bubblescope::schedules
