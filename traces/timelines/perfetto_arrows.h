// Slices of Perfetto's traces refer to others: by the arrows of messages, and by the waits before
// ops.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "sim/analysis/idle.h"
#include "sim/ir/program.h"
#include "traces/timelines/perfetto_packets.h"

namespace bubblescope::traces {

/// The arrows of messages. Each leads from the op that produced the value, through the message, to
/// the op that waits for it.
class MessageFlows {
 public:
  /// Flows are numbered from `first` on. `program` must outlive this object.
  MessageFlows(const Program& program, std::uint64_t first);

  void write(PerfettoSlice& slice, InstructionId id) const;

 private:
  std::uint64_t flow_of(InstructionId message) const { return first_ + message; }

  const Program& program_;
  std::uint64_t first_;
  std::vector<InstructionId> consumers_;
  std::vector<std::pair<InstructionId, InstructionId>> produced_;  ///< op and message, sorted
};

/// The causes and lengths of the waits before ops.
class WaitsBefore {
 public:
  /// `gaps` must outlive this object.
  WaitsBefore(const Program& program, const std::vector<IdleGap>& gaps);

  void annotate(PerfettoSlice& slice, InstructionId id) const;

 private:
  const std::vector<IdleGap>& gaps_;
  std::vector<std::size_t> first_;  ///< [instruction]: the first of the gaps before it
};

}  // namespace bubblescope::traces
