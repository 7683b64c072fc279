// Builds searched schedules from requests.
#include "schedules/searched.h"

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "schedules/search/best_order.h"
#include "schedules/search/known_orders.h"
#include "schedules/search/order_pool.h"

namespace bubblescope::schedules {

namespace {

/// Longer steps are searched in whole micro-batches only, whose levels are fewer.
constexpr std::int64_t kMaxOpsInBytes = 2'000;

std::int32_t chunks_of(SearchForm form) { return form == SearchForm::kLinear ? 1 : 2; }

SearchProblem problem_of(const ScheduleRequest& request, SearchForm form) {
  return search_problem(request, zigzag_placement(request.shape.ranks, chunks_of(form)),
                        form == SearchForm::kVFused);
}

/// The same limits in whole micro-batches. Their levels are fewer, and shared with schedules whose
/// caps are in units.
ScheduleRequest count_units(ScheduleRequest request) {
  request.memory.cap.assign(static_cast<std::size_t>(request.shape.ranks),
                            std::numeric_limits<std::int64_t>::max());
  return request;
}

std::vector<std::string> refuse_search(const ScheduleRequest& request, SearchForm form) {
  return refuse_caps(problem_of(request, form), request.memory);
}

Schedule search_order(const ScheduleRequest& request, SearchForm form) {
  const SearchProblem problem = problem_of(request, form);
  if (!counts_bytes(request.memory)) return to_schedule(problem, find_best_order(problem));
  OrderPool pool(problem);
  if (problem.ops() <= kMaxOpsInBytes) pool.offer(find_best_order(problem));
  const SearchProblem units = problem_of(count_units(request), form);
  if (min_caps_hold(units)) pool.offer(find_best_order(units));
  for (const TokenOrder& order : collect_searched_orders(problem, request, SearchedUnder::kOwnCaps))
    pool.offer(order);
  if (pool.empty()) pool.offer(find_best_order(problem));
  return to_schedule(problem, pool.best().order);
}

/// Claims the work on one rank, where there is nothing to wait for; empty for more ranks.
Claims claim_work_of_one_rank(const ScheduleRequest& request, SearchForm form) {
  Claims claims;
  if (request.shape.ranks > 1) return claims;
  const SearchProblem problem = problem_of(request, form);
  claims.max_span = span_lower_bound(problem);
  claims.makespan = claims.max_span;
  return claims;
}

ScheduleDef with_common_members(ScheduleDef def, SearchForm form) {
  def.implied_chunks = chunks_of(form);
  def.reads_costs = true;
  def.claims = [=](const ScheduleRequest& request) {
    return claim_work_of_one_rank(request, form);
  };
  return def;
}

}  // namespace

ScheduleRequest cap_microbatches(ScheduleRequest request, std::int64_t microbatches) {
  const std::int64_t share =
      request.memory.unit.forward * request.shape.chunks / request.memory.unit_parts;
  request.memory.cap.assign(static_cast<std::size_t>(request.shape.ranks), microbatches * share);
  request.memory.cap_bytes.clear();
  return request;
}

ScheduleRequest cap_chunks(ScheduleRequest request, std::int64_t chunks) {
  request.memory = MemoryModel{};
  request.memory.cap.assign(static_cast<std::size_t>(request.shape.ranks), chunks * kWhole);
  return request;
}

ScheduleDef define_searched(ScheduleDef def, SearchForm form) {
  def.refuse = [=](const ScheduleRequest& request) { return refuse_search(request, form); };
  def.build = [=](const ScheduleRequest& request) { return search_order(request, form); };
  return with_common_members(std::move(def), form);
}

ScheduleDef define_searched(ScheduleDef def, SearchForm form, const SetCaps& set_caps) {
  def.refuse = [=](const ScheduleRequest& request) {
    return refuse_search(set_caps(request), form);
  };
  def.build = [=](const ScheduleRequest& request) {
    const SearchProblem problem = problem_of(set_caps(request), form);
    return to_schedule(problem, find_best_order_under_caps(problem));
  };
  return with_common_members(std::move(def), form);
}

}  // namespace bubblescope::schedules
