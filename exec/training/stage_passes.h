// The passes of a micro-batch through a stage of the transformer.
#pragma once

#include "exec/training/stage_messages.h"
#include "exec/training/trained_stages.h"

namespace bubblescope::exec {

/// Throws Error for an op that runs before another one has produced what it needs.
class StagePasses {
 public:
  /// References are not copied.
  StagePasses(TrainedStages& stages, StageMessages& messages)
      : stages_(stages), messages_(messages) {}

  void compute_forward(const Op& op);
  void recompute_forward(const Op& op);
  void compute_input_grad(const Op& op);
  void compute_weight_grad(const Op& op);

 private:
  Matrix read_output_grad(const Op& op);

  TrainedStages& stages_;
  StageMessages& messages_;
};

/// Throws Error (Fault::kProblem) for an op that lacks something: "2B0 runs before its forward".
[[noreturn]] void refuse_before(const Op& op, const char* lack);

/// A slice's fraction of the tokens of its micro-batch, over which the loss is averaged.
double share_of_tokens(const Op& op, const TrainedStages& stages);

}  // namespace bubblescope::exec
