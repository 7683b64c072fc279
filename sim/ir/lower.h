// Lowering: a Schedule becomes a Program, or the cycle in which it would wait for ever.
#pragma once

#include <cstdint>
#include <variant>

#include "sim/ir/program.h"

namespace bubblescope {

/// How the two ops of an overlapped forward-backward pair start and end. All are edges only.
enum class Overlap : std::uint8_t {
  kSerial,  ///< F, then B when its own inputs are there
  kAtomic,  ///< F also waits for B's inputs; F's result is there when F ends
  kFused,   ///< atomic, and F's result is there only when B ends
};

struct LowerOptions {
  Overlap overlap = Overlap::kAtomic;
};

/// Adds the messages that the data flow asks for: one per activation or gradient that crosses
/// ranks, leaving when its producer ends. Throws Error when an op waits for one that no rank runs:
/// validate() tells that, and more, without throwing.
std::variant<Program, Deadlock> lower(const Schedule& schedule, const LowerOptions& options = {});

}  // namespace bubblescope
