// Finds forwards and backwards in a profile without annotations (PyTorch's Schedule1F1B has none).
//
// A stretch of the rank's main thread between two messages, or between a forward and a backward, is
// an op: a backward where the autograd engine evaluates functions, a forward where a gradient
// function is created ("fwdbwd" flows begin there). Other stretches, such as splitting the batch or
// scaling gradients, are neither.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/ir/op.h"
#include "traces/measured/profile_activity.h"

namespace bubblescope::traces {

struct UnannotatedOp {
  OpKind kind = OpKind::kForward;
  std::int32_t microbatch = 0;  ///< counted in order, per kind
  TimeSpan span;
};

/// How messages are posted relative to the ops.
struct UnannotatedSends {
  Nanos computing = 0;     ///< the time of all ops
  std::int32_t early = 0;  ///< calls that begin while an op still computes
  std::int32_t late = 0;   ///< sends long after the op before them has ended
  Nanos late_time = 0;     ///< by how much they are late, together

  void add(const UnannotatedSends& more);
};

struct UnannotatedStep {
  std::vector<UnannotatedOp> ops;
  std::int32_t forwards = 0;
  std::int32_t backwards = 0;
  std::int32_t receives = 0;  ///< calls
  std::int32_t sends = 0;     ///< calls
  UnannotatedSends posts;
};

/// The ops of a profile, step by step. Refers to its events.
class UnannotatedOps {
 public:
  explicit UnannotatedOps(const ChromeEvents& events);

  UnannotatedStep find(const TimeSpan& step) const;

 private:
  std::vector<const ProfiledEvent*> events_;  ///< those that matter to ops, in order of time
};

/// Describes, in whole sentences, messages that are posted within an op or long after it.
std::vector<std::string> describe_sends(const UnannotatedSends& sends);

}  // namespace bubblescope::traces
