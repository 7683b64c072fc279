// Builds searched schedules from requests.
#include "schedules/searched.h"

#include <limits>
#include <utility>

#include "schedules/search/best_order.h"
#include "schedules/search/known_orders.h"
#include "schedules/search/order_pool.h"

namespace bubblescope::schedules {

namespace {

/// Longer steps are searched in whole micro-batches only, whose levels are fewer.
constexpr std::int64_t kMaxOpsInBytes = 2'000;

SearchProblem problem_of(const ScheduleRequest& request, SearchForm form) {
  const std::int32_t chunks = form == SearchForm::kLinear ? 1 : 2;
  return search_problem(request, zigzag_placement(request.shape.ranks, chunks),
                        form == SearchForm::kVFused);
}

/// The same limits in whole micro-batches. Their levels are fewer, and shared with schedules whose
/// caps are in units.
ScheduleRequest count_units(ScheduleRequest request) {
  request.memory.cap.assign(static_cast<std::size_t>(request.shape.ranks),
                            std::numeric_limits<std::int64_t>::max());
  return request;
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

std::vector<std::string> refuse_search(const ScheduleRequest& request, SearchForm form) {
  return refuse_caps(problem_of(request, form), request.memory);
}

Schedule build_searched(const ScheduleRequest& request, SearchForm form) {
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

Schedule build_searched_under_its_caps(const ScheduleRequest& request, SearchForm form) {
  const SearchProblem problem = problem_of(request, form);
  return to_schedule(problem, find_best_order_under_caps(problem));
}

Claims claim_work_of_one_rank(const ScheduleRequest& request, SearchForm form) {
  Claims claims;
  if (request.shape.ranks > 1) return claims;
  const SearchProblem problem = problem_of(request, form);
  claims.max_span = span_lower_bound(problem);
  claims.makespan = claims.max_span;
  return claims;
}

}  // namespace bubblescope::schedules
