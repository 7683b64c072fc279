// One rank's part of a Program as its process enqueues it, with NCCL between the processes.
//
//   the Program     0F0  message 0>1 (no lane)  1F0
//   rank 0's plan   lane "compute": 0F0          lane "0>1": send, waits for 0F0
//   rank 1's plan   lane "0>1": receive          lane "compute": 1F0, waits for the receive
//
// A lane is a stream. Each directed link has a lane of its own at both ends, with its messages in
// one order. Copies to a keeper on another rank, and back, are links of their own, beside messages:
// the rank that evicts has them in its lanes of copies, the keeper in lanes "0>3 evicted" and
// "3>0 loaded". Where the p2p mode posts runs of neighbours as one (batched), a run is one
// instruction in the lane "group": one ncclGroup, which is over when all of it is.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/ir/program.h"

namespace bubblescope::exec {

/// What goes over a link: nothing waits for what goes over another.
enum class LinkKind : std::uint8_t {
  kMessages,  ///< and tokens
  kEvicted,
  kLoaded,
};

/// One end of a message, of a copy, or of a token that says that an instruction has ended.
struct PlannedTransfer {
  InstructionId id = 0;  ///< of the whole Program: the message, the copy, or what has ended
  bool sends = false;
  std::int32_t peer = 0;
  LinkKind link_kind = LinkKind::kMessages;

  bool operator==(const PlannedTransfer&) const = default;
};

/// Ranks that talk to each other apart from all others, in ascending order.
using RankGroup = std::vector<std::int32_t>;

/// A directed link.
struct PlannedLink {
  std::int32_t from = 0;
  std::int32_t to = 0;
  LinkKind link_kind = LinkKind::kMessages;

  bool operator==(const PlannedLink&) const = default;
};

struct RankPlan {
  /// What is enqueued here, in order: the lanes of one rank, which keeps its number.
  Program program;
  std::vector<InstructionId> origin;  ///< per instruction: of the whole Program
  std::vector<std::vector<PlannedTransfer>>
      transfers;                   ///< per instruction: what it sends and receives
  std::vector<bool> is_group;      ///< per instruction: its transfers are among all ranks
  std::vector<PlannedLink> links;  ///< of all ranks: those that have a lane
};

/// Of other ranks, a rank waits for messages and for what collectives ask (by tokens); it waits for
/// no posts of theirs, as NCCL's transfers wait for their other end by themselves. No plan waits
/// for ever where the Program does not: every lane, and so both ends of every link, has its
/// instructions in one order of the whole Program, in which what is waited for comes first. Of all
/// that has not ended, the first in that order heads its lanes and waits for nothing.
RankPlan plan_rank(const Program& program, std::int32_t rank);

/// Splits of all ranks into disjoint groups, such that every group is in one of them: [split] ->
/// indices of `groups`. Each is one call that all ranks make together.
std::vector<std::vector<std::size_t>> plan_splits(const std::vector<RankGroup>& groups);

}  // namespace bubblescope::exec
