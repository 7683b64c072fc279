// The path of a micro-batch through the stages. F runs on every stage from first to last, then I on
// every stage back to the first, and each W after its I.
#pragma once

#include <optional>

#include "schedules/search/search_problem.h"

namespace bubblescope::schedules {

struct StageOp {
  std::int32_t stage = 0;
  Step step = Step::kForward;
};

/// The op whose result an op needs; empty for the first stage's F. An I need not name the F of its
/// own stage, because that F comes earlier on the same path.
inline std::optional<StageOp> input_of(StageOp op, std::int32_t stages) {
  switch (op.step) {
    case Step::kForward:
      if (op.stage == 0) return std::nullopt;
      return StageOp{op.stage - 1, Step::kForward};
    case Step::kInputGrad:
      if (op.stage == stages - 1) return StageOp{op.stage, Step::kForward};
      return StageOp{op.stage + 1, Step::kInputGrad};
    case Step::kWeightGrad: return StageOp{op.stage, Step::kInputGrad};
  }
  return std::nullopt;
}

/// An op of a V-shaped placement with two chunks per rank.
struct VOp {
  std::size_t rank = 0;
  Token token = 0;
};

/// Returns the input of an op in a V-shaped placement.
inline std::optional<VOp> input_of(VOp op, std::size_t ranks) {
  const auto stages = static_cast<std::int32_t>(2 * ranks);
  const auto rank = static_cast<std::int32_t>(op.rank);
  const std::int32_t stage = chunk_of(op.token) == 0 ? rank : stages - 1 - rank;
  const std::optional<StageOp> input = input_of(StageOp{stage, step_of(op.token)}, stages);
  if (!input) return std::nullopt;
  const bool away = input->stage < stages / 2;
  return VOp{static_cast<std::size_t>(away ? input->stage : stages - 1 - input->stage),
             token_of(away ? 0 : 1, input->step)};
}

}  // namespace bubblescope::schedules
