// Refuses profiles of PyTorch that show no pipeline, or one whose steps cannot be distinguished.
#pragma once

#include <cstdint>
#include <string>

#include "traces/measured/profile_activity.h"
#include "traces/measured/unannotated_ops.h"

namespace bubblescope::traces {

/// The place of a step without annotations.
struct UnannotatedPlace {
  const std::string& file;
  std::int64_t step = 0;
  std::int32_t rank = 0;
  std::int64_t ranks = 0;  ///< of the pipeline; 0 if unknown
};

/// Forwards and backwards are in the order of micro-batches only if each rank has one stage. Throws
/// Error otherwise.
void expect_one_stage(const UnannotatedStep& step, const UnannotatedPlace& place);

/// Refuses ops without micro-batch and step, because they are ambiguous: the n-th op of a rank may
/// be micro-batch n of one step, or one micro-batch of step n.
[[noreturn]] void refuse_unnumbered(const std::string& file, const std::string& op);

/// Refuses a profile without ops: says what it has instead, and what would help.
[[noreturn]] void refuse_profile(const ChromeEvents& events, const ProfileActivity& activity,
                                 const std::string& file);

}  // namespace bubblescope::traces
