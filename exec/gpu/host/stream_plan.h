// Assigns every instruction to a stream, and lists the instructions of other streams that it waits
// for.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/ir/program.h"

namespace bubblescope::exec {

/// An in-order queue of a device.
struct PlannedStream {
  std::int32_t rank = 0;  ///< the stream is on the device of this rank
  std::string name;       ///< "compute", "communication", "0>1": a link
  bool computes = false;  ///< needs the rank's multiprocessors
};

struct StreamPlan {
  std::vector<PlannedStream> streams;
  /// All instructions in the order of enqueueing, which is about that of their starts: if the host
  /// waits for room on a full stream, the other streams have work meanwhile. A message directly
  /// follows its producer, so that it never waits on its link behind one that is produced later.
  std::vector<InstructionId> order;
  std::vector<std::uint32_t> place;       ///< [instruction]: its position in `order`
  std::vector<std::uint32_t> stream_of;   ///< [instruction]
  std::vector<std::uint32_t> wait_begin;  ///< per instruction and one more: into `waits`
  std::vector<InstructionId> waits;

  /// The instructions of other streams for which `id` waits: the last one of each stream.
  std::span<const InstructionId> waits_of(InstructionId id) const {
    return {waits.data() + wait_begin[id], wait_begin[id + 1] - wait_begin[id]};
  }
};

/// Plans one stream per lane, and one per directed link for messages without a lane. Messages of
/// one link stay in order, as on real links; other links, and the reverse direction, are
/// independent.
StreamPlan plan_streams(const Program& program);

/// More streams than this share the driver's hardware queues, which makes lanes wait for each
/// other.
inline constexpr std::size_t kMaxQueues = 32;

}  // namespace bubblescope::exec
