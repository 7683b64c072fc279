// Groups of micro-batches: what each framework accepts, and the resulting order.
#include "schedules/virtual_stages.h"

#include <algorithm>

#include "sim/ir/counted.h"

namespace bubblescope::schedules {
namespace {

using std::to_string;

/// PyTorch divides the micro-batches into equal rounds of at least p.
std::int32_t pytorch_rounds(const Shape& shape) {
  return std::max(1, shape.microbatches / shape.ranks);
}

std::vector<std::string> refuse_pytorch(const Shape& shape) {
  std::vector<std::string> reasons;
  const std::int32_t rounds = pytorch_rounds(shape);
  if (shape.microbatches % rounds != 0)
    reasons.push_back("pytorch runs m / `pp` = " + to_string(rounds) +
                      " equal rounds; `microbatches` must be a multiple of that, not " +
                      to_string(shape.microbatches));
  else if (shape.group_size.value_or(shape.microbatches / rounds) != shape.microbatches / rounds)
    reasons.push_back("pytorch chooses groups of " + to_string(shape.microbatches / rounds) +
                      " itself; leave `microbatch_group_size` out");
  return reasons;
}

std::vector<std::string> refuse_megatron(const Shape& shape, std::int32_t group_size) {
  const std::int32_t last_group = shape.microbatches % group_size;
  std::vector<std::string> reasons;
  if (shape.ranks < 2) reasons.push_back("megatron interleaves only with `pp` of at least 2");
  if (shape.chunks < 2) reasons.push_back("megatron interleaves only with `vpp` of at least 2");
  if (group_size < shape.ranks || group_size > shape.microbatches)
    reasons.push_back("megatron needs `pp` <= group size <= `microbatches`, not " +
                      to_string(shape.ranks) + " <= " + to_string(group_size) +
                      " <= " + to_string(shape.microbatches) +
                      "; change `microbatches` or `microbatch_group_size`");
  else if (last_group != 0 && last_group < shape.ranks)
    reasons.push_back("`microbatches` " + to_string(shape.microbatches) +
                      " leaves a last group of " + counted(last_group, "micro-batch") +
                      ", fewer than `pp` " + to_string(shape.ranks) +
                      "; change `microbatches` or `microbatch_group_size`");
  return reasons;
}

std::vector<std::string> refuse_colossalai(const Shape& shape, std::int32_t group_size) {
  std::vector<std::string> reasons;
  for (const std::int32_t divisor : {shape.ranks, shape.chunks})
    if (shape.microbatches % divisor != 0)
      reasons.push_back("colossalai needs `microbatches` to be a multiple of `pp` and of `vpp`; " +
                        to_string(shape.microbatches) + " is not a multiple of " +
                        to_string(divisor));
  if (group_size != shape.ranks)
    reasons.push_back("colossalai always has groups of `pp`; leave `microbatch_group_size` out");
  return reasons;
}

std::int32_t group_size_of(const ScheduleRequest& request) {
  const Shape& shape = request.shape;
  if (shape.group_size) return *shape.group_size;
  switch (request.profile) {
    case Profile::kPytorch:
    case Profile::kPytorch215: return shape.microbatches / pytorch_rounds(shape);
    case Profile::kMegatron:
    case Profile::kColossalai: return shape.ranks;
    case Profile::kNone:
    case Profile::kDeepspeed:
    case Profile::kDeepseek: return std::min(shape.ranks, shape.microbatches);
  }
  return shape.ranks;
}

}  // namespace

Groups find_groups(const ScheduleRequest& request) {
  const std::int32_t size = group_size_of(request);
  const std::int32_t remainder = request.shape.microbatches % size;
  return {size, remainder == 0 ? size : remainder};
}

bool fill_loop(const Groups& groups, const Shape& shape) {
  return groups.size == shape.microbatches || groups.last >= shape.ranks;
}

std::vector<std::string> refuse_groups(const ScheduleRequest& request) {
  const Shape& shape = request.shape;
  const std::int32_t group_size = group_size_of(request);
  const bool known = request.profile == Profile::kNone || request.profile == Profile::kMegatron;
  if (request.moe_overlap != MoeOverlap::kNone && !known)
    return {to_string(request.profile) + " has no `moe_overlap`; leave it out"};
  switch (request.profile) {
    case Profile::kPytorch:
    case Profile::kPytorch215: return refuse_pytorch(shape);
    case Profile::kMegatron: return refuse_megatron(shape, group_size);
    case Profile::kColossalai: return refuse_colossalai(shape, group_size);
    case Profile::kNone:
    case Profile::kDeepspeed:
    case Profile::kDeepseek: break;
  }
  if (group_size > shape.microbatches)
    return {"`microbatch_group_size` " + to_string(group_size) + " is more than `microbatches` " +
            to_string(shape.microbatches)};
  return {};
}

std::int64_t count_virtual_warmup(const ScheduleRequest& request, std::int32_t rank,
                                  std::int32_t steps) {
  const Shape& shape = request.shape;
  const std::int64_t ahead = std::int64_t{steps} * (shape.ranks - 1 - rank);
  const std::int64_t overlap = request.moe_overlap == MoeOverlap::kNone ? 0 : 1;
  // There is no loop.
  if (shape.chunks == 1) return ahead + overlap;
  const Groups groups = find_groups(request);
  // A single micro-batch at the end delays nothing if there are two chunks.
  const bool lone = groups.last == 1 && shape.chunks == 2;
  const std::int64_t longest = std::int64_t{groups.size} + (lone ? groups.size : groups.last);
  return std::int64_t{shape.chunks - 1} * groups.size + std::min(ahead, longest) + overlap;
}

Visits make_virtual_visits(const Shape& shape, std::int32_t group_size, std::int32_t rank) {
  Visits visits;
  const std::size_t count =
      static_cast<std::size_t>(std::int64_t{shape.microbatches} * shape.chunks);
  visits.forward.resize(count);
  visits.backward.resize(count);
  Visit* forward = visits.forward.data();
  Visit* backward = visits.backward.data();
  for (std::int32_t first = 0; first < shape.microbatches; first += group_size) {
    const std::int32_t end = std::min(first + group_size, shape.microbatches);
    for (std::int32_t chunk = 0; chunk < shape.chunks; ++chunk) {
      const std::int32_t mirrored = shape.chunks - 1 - chunk;
      for (std::int32_t microbatch = first; microbatch < end; ++microbatch) {
        *forward++ = {chunk * shape.ranks + rank, microbatch};
        *backward++ = {mirrored * shape.ranks + rank, microbatch};
      }
    }
  }
  return visits;
}

Schedule interleave_split(const ScheduleRequest& request, std::int32_t steps,
                          std::int32_t rank_lag) {
  const Shape& shape = request.shape;
  Schedule schedule;
  schedule.rank_of_stage = loop_placement(shape.ranks, shape.chunks);
  const std::int32_t group_size = find_groups(request).size;
  for (std::int32_t rank = 0; rank < shape.ranks; ++rank)
    schedule.order.push_back(alternate_split(make_virtual_visits(shape, group_size, rank),
                                             count_virtual_warmup(request, rank, steps),
                                             rank_lag * rank));
  return schedule;
}

std::vector<std::int64_t> count_peak_chunks(const ScheduleRequest& request, std::int32_t steps,
                                            std::int32_t rank_lag) {
  const std::int64_t visits = std::int64_t{request.shape.microbatches} * request.shape.chunks;
  std::vector<std::int64_t> chunks;
  for (std::int32_t rank = 0; rank < request.shape.ranks; ++rank)
    chunks.push_back(
        std::min(visits, count_virtual_warmup(request, rank, steps) + 1 + rank_lag * rank));
  return chunks;
}

}  // namespace bubblescope::schedules
