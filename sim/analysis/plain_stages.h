// The stages of a plain step: one with only F, B, I and W ops of whole sequences in a chain of
// stages, whose ops wait for at most one message each. Most schedules' steps are.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/ir/plain_ops.h"
#include "sim/ir/schedule.h"

namespace bubblescope::inline sim {

/// Whether the frame of a schedule, which is all but its orders, is that of a plain step, and all
/// of its stages are on ranks.
bool has_plain_frame(const Schedule& schedule);

/// A stage, with all that its ops share. Values are numbered [stage * micro-batches + micro-batch];
/// those behind the last stage's stand for values that nothing waits for.
struct PlainStage {
  std::int32_t rank = 0;
  std::int32_t first_microbatch = 0;  ///< those of its pipeline
  std::int32_t end_microbatch = 0;
  std::size_t own = 0;                            ///< the first of its values
  std::size_t input = 0;                          ///< those of the stage whose activations it reads
  std::size_t reader = 0;                         ///< those of the stage that returns its gradients
  bool receives_input = false;                    ///< whether activations come from another rank
  bool receives_gradients = false;                ///< whether gradients do
  std::array<std::int64_t, kPlainKinds> count{};  ///< of the ops that have run

  std::int64_t microbatches() const { return end_microbatch - first_microbatch; }
  /// The messages to other ranks: where activations come from, gradients go to.
  std::int64_t sends() const {
    return (std::int64_t{receives_input} + std::int64_t{receives_gradients}) * microbatches();
  }
};

/// The stages of a schedule with a plain frame, before any of their ops.
std::vector<PlainStage> list_plain_stages(const Schedule& schedule);

}  // namespace bubblescope::inline sim
