// Builds searched schedules from requests.
#include "schedules/searched.h"

#include <utility>

#include "schedules/search/best_order.h"

namespace bubblescope::schedules {

namespace {

SearchProblem problem_of(const ScheduleRequest& request, SearchForm form) {
  const std::int32_t chunks = form == SearchForm::kLinear ? 1 : 2;
  return search_problem(request, zigzag_placement(request.shape.ranks, chunks),
                        form == SearchForm::kVFused);
}

}  // namespace

ScheduleRequest cap_microbatches(ScheduleRequest request, std::int64_t microbatches) {
  const std::int64_t share =
      request.memory.unit.forward * request.shape.chunks / request.memory.unit_parts;
  request.memory.cap.assign(static_cast<std::size_t>(request.shape.ranks), microbatches * share);
  return request;
}

ScheduleRequest cap_chunks(ScheduleRequest request, std::int64_t chunks) {
  request.memory = MemoryModel{};
  request.memory.cap.assign(static_cast<std::size_t>(request.shape.ranks), chunks * kWhole);
  return request;
}

std::vector<std::string> refuse_search(const ScheduleRequest& request, SearchForm form) {
  return refuse_caps(problem_of(request, form), request.memory.unit_parts);
}

Schedule build_searched(const ScheduleRequest& request, SearchForm form) {
  const SearchProblem problem = problem_of(request, form);
  return to_schedule(problem, find_best_order(problem));
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
