// Converts requests to search problems, and token orders to schedules.
#include "schedules/search/search_problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "sim/ir/bytes_text.h"
#include "sim/ir/counted.h"
#include "sim/ir/range.h"
#include "sim/ir/saturated.h"
#include "sim/ir/units.h"

namespace bubblescope::schedules {

namespace {

Op make_op(const SearchProblem& problem, std::int32_t rank, Token token, std::int32_t microbatch) {
  const std::int32_t stage = problem.stage(rank, token);
  switch (step_of(token)) {
    case Step::kForward: return forward(stage, microbatch);
    case Step::kInputGrad:
      return problem.fused ? backward(stage, microbatch) : input_grad(stage, microbatch);
    case Step::kWeightGrad: return weight_grad(stage, microbatch);
  }
  return {};
}

/// A message leaves when its op ends, before the gap that the search counts into the op.
void set_latencies(SearchProblem& problem, const CostModel& costs) {
  const auto latency = [&](std::int32_t from, std::int32_t to) -> Nanos {
    const std::int32_t sender = problem.rank_of_stage[static_cast<std::size_t>(from)];
    const std::int32_t receiver = problem.rank_of_stage[static_cast<std::size_t>(to)];
    if (sender == receiver) return 0;
    if (costs.message_between.empty()) return costs.message - problem.op_gap;
    return costs.message_between[static_cast<std::size_t>(sender * problem.ranks + receiver)] -
           problem.op_gap;
  };
  const std::int32_t last = problem.stages() - 1;
  for (std::int32_t stage = 0; stage <= last; ++stage) {
    problem.forward_latency.push_back(stage == 0 ? 0 : latency(stage - 1, stage));
    problem.backward_latency.push_back(stage == last ? 0 : latency(stage + 1, stage));
  }
}

void set_costs(SearchProblem& problem, const CostModel& costs) {
  problem.op_gap = costs.op_gap;
  for (const StageCost& cost : costs.stages) {
    const Nanos gradient = problem.fused ? cost.backward : cost.input_grad;
    problem.duration.push_back(
        {cost.forward + costs.op_gap, gradient + costs.op_gap, cost.weight_grad + costs.op_gap});
  }
}

void set_memory(SearchProblem& problem, const MemoryModel& memory) {
  for (std::size_t stage = 0; stage < problem.duration.size(); ++stage) {
    const MemoryDelta& delta = counts_bytes(memory) ? memory.activation_bytes[stage] : memory.unit;
    problem.memory.push_back({delta.forward,
                              delta.input_grad + (problem.fused ? delta.weight_grad : 0),
                              delta.weight_grad});
  }
}

/// The most that a micro-batch holds on one of the rank's stages, in bytes.
Bytes largest_activation(const SearchProblem& problem, std::int32_t rank,
                         const MemoryModel& memory) {
  Bytes largest = 1;
  for (std::int32_t chunk = 0; chunk < problem.chunks; ++chunk) {
    const auto stage =
        static_cast<std::size_t>(problem.stage(rank, token_of(chunk, Step::kForward)));
    largest = std::max(largest, memory.activation_bytes[stage].forward);
  }
  return largest;
}

void set_caps(SearchProblem& problem, const MemoryModel& memory) {
  const auto ranks = static_cast<std::size_t>(problem.ranks);
  problem.cap.assign(ranks, std::numeric_limits<std::int64_t>::max());
  problem.fixed_memory.assign(ranks, 0);
  for (std::size_t rank = 0; rank < memory.cap.size(); ++rank)
    problem.cap[rank] = saturated_product(memory.cap[rank], memory.unit_parts);
  problem.in_bytes = counts_bytes(memory);
  if (memory.cap_bytes.empty() || memory.activation_bytes.empty()) return;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const Bytes fixed = memory.static_bytes.empty() ? 0 : memory.static_bytes[rank];
    const Bytes room = memory.cap_bytes[rank] - fixed;
    if (problem.in_bytes) {
      problem.cap[rank] = room;
      problem.fixed_memory[rank] = fixed;
    } else {
      const Bytes largest = largest_activation(problem, static_cast<std::int32_t>(rank), memory);
      problem.cap[rank] =
          std::min(problem.cap[rank], saturated_product(room / largest, problem.memory[0][0]));
    }
  }
}

std::string refuse_bytes(std::int32_t rank, Bytes room, Bytes needed) {
  return fmt::format(
      "rank {} has {} left for activations, but one micro-batch alone needs {}; raise `cap`, "
      "spread the model over more devices or shorten the sequence",
      rank, format_bytes(std::max<Bytes>(room, 0)), format_bytes(needed));
}

}  // namespace

bool counts_bytes(const MemoryModel& memory) {
  return memory.cap.empty() && !memory.cap_bytes.empty() && !memory.activation_bytes.empty();
}

SearchProblem search_problem(const ScheduleRequest& request, std::vector<std::int32_t> placement,
                             bool fused) {
  SearchProblem problem;
  problem.ranks = request.shape.ranks;
  problem.chunks = request.shape.chunks;
  problem.microbatches = request.shape.microbatches;
  problem.fused = fused;
  problem.rank_of_stage = std::move(placement);
  problem.stage_of.resize(problem.rank_of_stage.size());
  Schedule empty;
  empty.shape = request.shape;
  empty.rank_of_stage = problem.rank_of_stage;
  empty.order.resize(static_cast<std::size_t>(problem.ranks));
  const std::vector<std::int32_t> chunk_of_stage = bubblescope::chunk_of_stage(empty);
  for (std::size_t stage = 0; stage < problem.rank_of_stage.size(); ++stage)
    problem.stage_of[static_cast<std::size_t>(problem.rank_of_stage[stage] * problem.chunks +
                                              chunk_of_stage[stage])] =
        static_cast<std::int32_t>(stage);
  const CostModel costs = request.stage_costs ? *request.stage_costs : spread(request.cost, empty);
  set_costs(problem, costs);
  set_latencies(problem, costs);
  set_memory(problem, request.memory);
  set_caps(problem, request.memory);
  return problem;
}

bool is_v_placement(const SearchProblem& problem) {
  return problem.chunks == 2 && problem.rank_of_stage == zigzag_placement(problem.ranks, 2);
}

Nanos sum_work(const SearchProblem& problem, std::int32_t rank) {
  Nanos sum = 0;
  for (std::int32_t token = 0; token < problem.tokens(); ++token)
    if (!problem.fused || step_of(static_cast<Token>(token)) != Step::kWeightGrad)
      sum += problem.duration_of(rank, static_cast<Token>(token));
  return multiply(sum, problem.microbatches, "the work of a rank");
}

std::int64_t memory_for_rest(const SearchProblem& problem, std::int32_t rank, std::int32_t first) {
  std::int64_t held = 0;
  std::int64_t peak_so_far = 0;
  const auto add = [&](std::int32_t chunk, Step step) {
    held += problem.memory_of(rank, token_of(chunk, step));
    peak_so_far = std::max(peak_so_far, held);
  };
  for (std::int32_t chunk = first; chunk < problem.chunks; ++chunk) add(chunk, Step::kForward);
  for (std::int32_t chunk = problem.chunks - 1; chunk >= first; --chunk) {
    add(chunk, Step::kInputGrad);
    if (!problem.fused) add(chunk, Step::kWeightGrad);
  }
  return peak_so_far;
}

bool min_caps_hold(const SearchProblem& problem) {
  for (std::int32_t rank = 0; rank < problem.ranks; ++rank)
    if (problem.cap[static_cast<std::size_t>(rank)] < min_cap(problem, rank)) return false;
  return true;
}

bool limits_are_alike(const SearchProblem& problem) {
  for (std::int32_t rank = 1; rank < problem.ranks; ++rank)
    if (problem.limit(rank) != problem.limit(0)) return false;
  return true;
}

bool fits(const SearchProblem& problem, std::int32_t rank, const Token* tokens) {
  std::int64_t held = 0;
  const std::int64_t cap = problem.cap[static_cast<std::size_t>(rank)];
  for (std::int32_t position = 0; position < problem.ops_per_rank(); ++position) {
    held += problem.memory_of(rank, tokens[position]);
    if (held > cap) return false;
  }
  return true;
}

bool fits_everywhere(const SearchProblem& problem, const TokenOrder& order) {
  for (std::int32_t rank = 0; rank < problem.ranks; ++rank)
    if (!fits(problem, rank, order.data() + std::int64_t{rank} * problem.ops_per_rank()))
      return false;
  return true;
}

std::vector<std::string> refuse_caps(const SearchProblem& problem, const MemoryModel& memory) {
  const std::int32_t unit_parts = memory.unit_parts;
  std::vector<std::string> reasons;
  for (std::int32_t rank = 0; rank < problem.ranks; ++rank) {
    const std::int64_t cap = problem.cap[static_cast<std::size_t>(rank)];
    const std::int64_t needed = min_cap(problem, rank);
    if (cap >= needed) continue;
    if (counts_bytes(memory))
      reasons.push_back(refuse_bytes(rank, cap, needed));
    else
      reasons.push_back("rank " + std::to_string(rank) + " may hold " +
                        format_millionths(cap / unit_parts) + ", but one micro-batch alone needs " +
                        format_millionths((needed + unit_parts - 1) / unit_parts) +
                        "; raise `cap`");
  }
  if (reasons.size() > 2)
    reasons = {reasons.front(), counted(reasons.size() - 1, "more rank") + " may hold too little"};
  return reasons;
}

Schedule to_schedule(const SearchProblem& problem, const TokenOrder& order) {
  Schedule schedule;
  schedule.rank_of_stage = problem.rank_of_stage;
  schedule.order.resize(static_cast<std::size_t>(problem.ranks));
  std::size_t at = 0;
  for (std::int32_t rank = 0; rank < problem.ranks; ++rank) {
    std::vector<std::int32_t> next(static_cast<std::size_t>(problem.tokens()), 0);
    RankOrder& ops = schedule.order[static_cast<std::size_t>(rank)];
    ops.reserve(static_cast<std::size_t>(problem.ops_per_rank()));
    for (std::int32_t position = 0; position < problem.ops_per_rank(); ++position) {
      const Token token = order[at++];
      ops.push_back(make_op(problem, rank, token, next[token]++));
    }
  }
  return schedule;
}

}  // namespace bubblescope::schedules
