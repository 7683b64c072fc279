// Lanes as streams: which stream every instruction is enqueued on, and which others it waits for.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/ir/program.h"

namespace bubblescope {

/// An in-order queue of a device.
struct PlannedStream {
  std::int32_t rank = 0;  ///< whose device it is on
  std::string name;       ///< "compute", "communication", "0>1": a link
  bool computes = false;  ///< it needs the rank's multiprocessors
};

struct StreamPlan {
  std::vector<PlannedStream> streams;
  /// Everything in the order in which it is put on streams: the Program's, but messages follow
  /// their makers at once, so that on a link none stands behind one that is made later.
  std::vector<InstructionId> order;
  std::vector<std::uint32_t> place;       ///< per instruction, where it stands in the order
  std::vector<std::uint32_t> stream_of;   ///< per instruction
  std::vector<std::uint32_t> wait_begin;  ///< one entry per instruction, and the end
  std::vector<InstructionId> waits;

  /// What an instruction waits for on other streams: one instruction each, the last.
  std::span<const InstructionId> waits_of(InstructionId id) const {
    return {waits.data() + wait_begin[id], wait_begin[id + 1] - wait_begin[id]};
  }
};

/// A stream per lane, and one per directed link for messages without a lane. Messages of a link
/// keep their order, as on real wires; those of other links, or back on the same one, pass freely.
StreamPlan plan_streams(const Program& program);

/// Streams beyond this number share the driver's queues, which makes lanes wait for each other.
inline constexpr std::size_t kMostQueues = 32;

}  // namespace bubblescope
