// The input of the order search: a schedule request with everything looked up, and orders as
// tokens.
//
//   tokens of rank 0 of 1F1B, p = 2, m = 3:  F F B F B B,  with fused backwards and one chunk
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/ir/saturated.h"
#include "sim/ir/schedule.h"
#include "sim/model/schedule_def.h"

namespace bubblescope::schedules {

/// The kind of an op on one stage. With fused backwards kInputGrad stands for the full backward and
/// there are no W.
enum class Step : std::uint8_t { kForward, kInputGrad, kWeightGrad };
inline constexpr int kSteps = 3;

/// chunk * kSteps + step. Each token processes micro-batches first in, first out, so a sequence of
/// tokens determines a rank's order: the n-th `F of chunk 1` is that of micro-batch n.
using Token = std::uint8_t;
inline Token token_of(std::int32_t chunk, Step step) {
  return static_cast<Token>(chunk * kSteps + static_cast<int>(step));
}
inline std::int32_t chunk_of(Token token) { return token / kSteps; }
inline Step step_of(Token token) { return static_cast<Step>(token % kSteps); }

/// The orders of all ranks, concatenated: each has SearchProblem::ops_per_rank tokens.
using TokenOrder = std::vector<Token>;

struct SearchProblem {
  std::int32_t ranks = 1;
  std::int32_t chunks = 1;
  std::int32_t microbatches = 1;
  bool fused = false;            ///< the backward is one op; there are no W
  bool in_bytes = false;         ///< memory and caps; otherwise they are in units
  bool from_step_start = false;  ///< minimizes the step instead of the longest span
  Nanos op_gap = 0;              ///< the part of every duration in which its rank rests
  std::vector<std::int32_t> rank_of_stage;
  std::vector<std::int32_t> stage_of;                    ///< [rank * chunks + chunk]
  std::vector<std::array<Nanos, kSteps>> duration;       ///< [stage][step], with the op gap
  std::vector<std::array<std::int64_t, kSteps>> memory;  ///< [stage][step]: memory that the op adds
  std::vector<std::int64_t> cap;                         ///< [rank], in the unit of `memory`
  /// [rank]: what it holds all the time and `cap` leaves out, so that ranks with one limit are
  /// alike.
  std::vector<std::int64_t> fixed_memory;

  /// The most that a rank may hold, with its fixed memory.
  std::int64_t limit(std::int32_t rank) const {
    return saturated_sum(cap[static_cast<std::size_t>(rank)],
                         fixed_memory[static_cast<std::size_t>(rank)]);
  }
  /// [stage]: of the activation from the previous stage, since the end of its op's gap. Negative
  /// where messages take less than the gap.
  std::vector<Nanos> forward_latency;
  std::vector<Nanos> backward_latency;  ///< [stage]: of the gradient from the next stage

  std::int32_t stages() const { return ranks * chunks; }
  std::int32_t tokens() const { return chunks * kSteps; }
  std::int32_t ops_per_rank() const { return chunks * microbatches * (fused ? 2 : 3); }
  std::int64_t ops() const { return std::int64_t{ranks} * ops_per_rank(); }
  std::int32_t stage(std::int32_t rank, Token token) const {
    return stage_of[static_cast<std::size_t>(rank * chunks + chunk_of(token))];
  }
  Nanos duration_of(std::int32_t rank, Token token) const {
    return duration[static_cast<std::size_t>(stage(rank, token))][token % kSteps];
  }
  std::int64_t memory_of(std::int32_t rank, Token token) const {
    return memory[static_cast<std::size_t>(stage(rank, token))][token % kSteps];
  }
};

/// Whether caps, and with them all memory of a search, are in bytes: if there are no caps in units.
bool counts_bytes(const MemoryModel& memory);

/// Looks up costs, latency, memory and caps of a request with the given placement. Where caps are
/// in units and in bytes, both hold.
SearchProblem search_problem(const ScheduleRequest& request, std::vector<std::int32_t> placement,
                             bool fused = false);

/// True for two chunks per rank that lie down the ranks and up again.
bool is_v_placement(const SearchProblem& problem);

/// Returns a rank's busy time over the whole step.
Nanos sum_work(const SearchProblem& problem, std::int32_t rank);

/// The memory that a rank needs to finish one micro-batch from the F of `chunk` on, while nothing
/// else runs.
std::int64_t memory_for_rest(const SearchProblem& problem, std::int32_t rank, std::int32_t chunk);

/// The memory that a rank needs for one micro-batch: under a smaller cap there is no schedule.
inline std::int64_t min_cap(const SearchProblem& problem, std::int32_t rank) {
  return memory_for_rest(problem, rank, 0);
}

/// True if every rank's cap is enough for one micro-batch: then there is an order.
bool min_caps_hold(const SearchProblem& problem);

/// True if no rank may hold more than another, with its fixed memory.
bool limits_are_alike(const SearchProblem& problem);

/// True if a rank's tokens never hold more than its cap.
bool fits(const SearchProblem& problem, std::int32_t rank, const Token* tokens);

/// True if no rank's tokens ever hold more than its cap.
bool fits_everywhere(const SearchProblem& problem, const TokenOrder& order);

/// Refuses caps that are too small for one micro-batch, each rank in one sentence with the remedy.
/// The problem is that of a request with this memory.
std::vector<std::string> refuse_caps(const SearchProblem& problem, const MemoryModel& memory);

/// The schedule with the ops that the tokens stand for.
Schedule to_schedule(const SearchProblem& problem, const TokenOrder& order);

}  // namespace bubblescope::schedules
