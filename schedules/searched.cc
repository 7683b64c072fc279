// From requests to searched schedules.
#include "schedules/searched.h"

#include <utility>

#include "schedules/search/best_order.h"

namespace bubblescope {

namespace {

constexpr std::int64_t kMillionths = 1'000'000;

SearchProblem problem_of(const ScheduleRequest& request, SearchForm form) {
  const std::int32_t chunks = form == SearchForm::kLinear ? 1 : 2;
  return search_problem(request, zigzag_placement(request.shape.ranks, chunks),
                        form == SearchForm::kVFused);
}

/// Millionths of a unit as text: "2", "1.5".
std::string unit_text(std::int64_t millionths) {
  std::string text = std::to_string(millionths / kMillionths);
  std::string part = std::to_string(millionths % kMillionths);
  part.insert(0, 6 - part.size(), '0');
  part.erase(part.find_last_not_of('0') + 1);
  return part.empty() ? text : text + '.' + part;
}

}  // namespace

ScheduleRequest capped_at(ScheduleRequest request, std::int64_t microbatches) {
  const std::int64_t share =
      request.memory.unit.forward * request.shape.chunks / request.memory.unit_parts;
  request.memory.cap.assign(static_cast<std::size_t>(request.shape.ranks), microbatches * share);
  return request;
}

ScheduleRequest capped_at_chunks(ScheduleRequest request, std::int64_t chunks) {
  request.memory = MemoryModel{};
  request.memory.cap.assign(static_cast<std::size_t>(request.shape.ranks), chunks * kMillionths);
  return request;
}

std::vector<std::string> refuse_search(const ScheduleRequest& request, SearchForm form) {
  const SearchProblem problem = problem_of(request, form);
  std::vector<std::string> reasons;
  for (std::int32_t rank = 0; rank < problem.ranks; ++rank) {
    const std::int64_t needed = least_cap(problem, rank);
    if (problem.cap[static_cast<std::size_t>(rank)] >= needed) continue;
    const std::int64_t parts = request.memory.unit_parts;
    reasons.push_back("rank " + std::to_string(rank) + " may hold " +
                      unit_text(request.memory.cap[static_cast<std::size_t>(rank)]) +
                      ", but one micro-batch alone needs " +
                      unit_text((needed + parts - 1) / parts) + "; raise --cap");
  }
  return reasons;
}

Schedule build_searched(const ScheduleRequest& request, SearchForm form) {
  const SearchProblem problem = problem_of(request, form);
  return to_schedule(problem, best_order(problem));
}

Claims claim_work_of_one_rank(const ScheduleRequest& request, SearchForm form) {
  Claims claims;
  if (request.shape.ranks > 1) return claims;
  const SearchProblem problem = problem_of(request, form);
  claims.max_span = least_span(problem);
  claims.makespan = claims.max_span;
  return claims;
}

}  // namespace bubblescope
