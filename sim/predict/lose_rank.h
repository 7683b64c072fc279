// A rank that dies: its micro-batches go to the same stage of the other replicas ("ReCycle:
// Resilient training of large DNN models using pipeline adaptation", SOSP 2024).
//
// A data-parallel job of D replicas of a pipeline is one schedule. It numbers ranks stage by stage,
// as Megatron-LM does: replica d of rank r of the pipeline is rank r D + d. Micro-batch j of
// replica d is micro-batch j D + d. When a rank of one replica is lost, its D - 1 peers, which hold
// the same weights, take turns on its micro-batches; all else stays where it is. Activations and
// gradients of the damaged replica then go to a peer and back.
//
//   1F1B, p = 2, m = 2, D = 2        and without rank 1 of the last replica
//   rank 0  0F0 0F2 0B0 0B2          rank 0  0F0 0F2 0B0 0B2
//   rank 1  0F1 0F3 0B1 0B3          rank 1  0F1 0F3 0B1 0B3
//   rank 2  1F0 1B0 1F2 1B2          rank 2  1F0 1F1 1B0 1B1 1F2 1F3 1B2 1B3
//   rank 3  1F1 1B1 1F3 1B3
#pragma once

#include <cstdint>

#include "sim/ir/valid_schedule.h"

namespace bubblescope::inline sim {

/// A rank of the pipeline that one of its replicas has lost. Replicas are alike, so it is the last.
struct LostRank {
  std::int32_t replicas = 2;
  std::int32_t rank = 0;

  /// Returns the number of the job's ranks that hold this rank of the pipeline.
  std::int32_t replicas_of(std::int32_t of_rank) const {
    return replicas - (of_rank == rank ? 1 : 0);
  }
  /// The first of them; those of the other replicas follow.
  std::int32_t first_replica(std::int32_t of_rank) const {
    return of_rank * replicas - (of_rank > rank ? 1 : 0);
  }
  /// The replica whose rank runs a micro-batch of the job in place of the lost one.
  std::int32_t peer_of(std::int32_t microbatch) const {
    return microbatch / replicas % (replicas - 1);
  }
  /// Whether a micro-batch of the job belongs to the damaged replica.
  bool is_damaged(std::int32_t microbatch) const { return microbatch % replicas == replicas - 1; }
};

/// Throws Error where there is no such rank, or no other replica; and Error (Fault::kProblem) for
/// schedules that bind more than ops to a rank: posted messages, versions of weights, copies of
/// activations, fused forwards, after edges, stages that several ranks share already; for two
/// pipelines with unequal numbers of micro-batches; and for jobs that are too large.
void expect_rank_may_be_lost(const Schedule& pipeline, const LostRank& lost);

/// Returns the schedule of the whole job without the rank; its peers run its micro-batches. A peer
/// runs them when the lost rank would have, if every op took equally long, so every order is
/// possible. It holds what it held before, and its part of what the lost rank held. An overlapped
/// pair of two micro-batches that go to different peers is split. The peers run `begun` of their
/// own ops first, and only then those that they take over.
ValidSchedule lose_rank(const ValidSchedule& pipeline, const LostRank& lost, std::size_t begun = 0);

}  // namespace bubblescope::inline sim
