// A rank plan is one rank's part of a Program, as its process enqueues it, with NCCL between the
// processes.
//
//   the Program     0F0  message 0>1 (no lane)  1F0
//   rank 0's plan   lane "compute": 0F0          lane "0>1": send, waits for 0F0
//   rank 1's plan   lane "0>1": receive          lane "compute": 1F0, waits for the receive
//
// A lane becomes a stream. Each directed link has a lane of its own at both ends, with its messages
// in the same order.
//
// Copies to an offload target on another rank, and back, have links apart from messages. The rank
// that evicts has them in its own copy lanes, the offload target in lanes "0>3 evicted" and "3>0
// loaded".
//
// If the p2p mode posts adjacent messages together (batched), they are one instruction in the lane
// "group": one ncclGroup, which ends when all its messages have ended.
//
// A token is an empty transfer that notifies another rank of the end of an instruction.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/ir/program.h"

namespace bubblescope::exec {

/// The kind of a link's transfers. Links of different kinds do not wait for each other.
enum class LinkKind : std::uint8_t {
  kMessages,  ///< messages and tokens
  kEvicted,
  kLoaded,
};

/// One end of a message, a copy or a token.
struct PlannedTransfer {
  InstructionId id = 0;  ///< its message, copy or ended instruction in the whole Program
  bool sends = false;
  std::int32_t peer = 0;
  LinkKind link_kind = LinkKind::kMessages;

  bool operator==(const PlannedTransfer&) const = default;
};

/// Ranks that share a communicator, in ascending order.
using RankGroup = std::vector<std::int32_t>;

/// The transfers of one kind from one rank to another.
struct PlannedLink {
  std::int32_t from = 0;
  std::int32_t to = 0;
  LinkKind link_kind = LinkKind::kMessages;

  bool operator==(const PlannedLink&) const = default;
};

struct RankPlan {
  /// The instructions to enqueue, in order. The lanes belong to one rank, which keeps its number.
  Program program;
  std::vector<InstructionId> origin;  ///< per instruction: its id in the whole Program
  std::vector<std::vector<PlannedTransfer>>
      transfers;                   ///< per instruction: what it sends or receives
  std::vector<bool> is_group;      ///< per instruction: it is an ncclGroup among all ranks
  std::vector<PlannedLink> links;  ///< the links of all ranks
};

/// Plans one rank. It waits for messages of other ranks, and by tokens for what collectives depend
/// on, but not for their posts, since NCCL's transfers wait for their peers anyway.
///
/// No plan can deadlock unless the Program does. Every lane, and so both ends of every link,
/// follows one order of the whole Program in which dependencies come first. The first unfinished
/// instruction in that order is thus at the head of its lanes and waits for nothing.
RankPlan plan_rank(const Program& program, std::int32_t rank);

/// Sorts groups into splits: the groups of one split are disjoint, so that all ranks can make them
/// by one call. [split] -> indices into `groups`.
std::vector<std::vector<std::size_t>> plan_splits(const std::vector<RankGroup>& groups);

}  // namespace bubblescope::exec
