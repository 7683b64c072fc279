// Carries out the transfers, sums and gathers of one rank's plan over NCCL.
//
// A directed link is the traffic of one kind from one rank to another. Each has its own
// communicator, and so have the processes that hold the same stage, so that no transfer waits for
// an unrelated one.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "exec/gpu/host/gpu_machine.h"
#include "exec/gpu/host/gpu_stage.h"
#include "exec/nccl/nccl.h"
#include "exec/nccl/nccl_place.h"
#include "exec/nccl/shards.h"
#include "exec/runtime/step_protocol.h"
#include "sim/ir/schedule.h"

namespace bubblescope::exec {

/// The buffers of a transfer at this end. Both ends must have the same number of buffers, with the
/// same sizes.
using FindBuffers = std::function<std::vector<NcclRanks::Buffer>(const PlannedTransfer& transfer)>;

class NcclLinks {
 public:
  /// Makes the communicators, and sends something over each of them to set up its connections. All
  /// processes must construct it at the same time. The arguments are not copied. Throws Error.
  NcclLinks(const NcclPlace& place, const GpuMachine& machine, const Schedule& schedule,
            const RankPlan& plan, StepProtocol& protocol);

  /// Enqueues an instruction's transfers on a stream.
  void carry(InstructionId id, const FindBuffers& find, void* stream);

  /// Whether another process has a replica of a stage.
  bool is_shared(std::int32_t stage) const { return group_of_stage(stage).has_value(); }

  /// Whether the replicas of the pipeline shard a stage's parameters.
  bool gathers(std::int32_t stage) const {
    return gathered_[static_cast<std::size_t>(stage)] && is_shared(stage);
  }

  // Each of these enqueues a collective, in place, among the processes that hold a stage.
  /// All processes get the sum.
  void sum(std::int32_t stage, const std::vector<NcclRanks::Buffer>& values, void* stream);
  /// Each replica gets the sum of its own shards of float32 matrices.
  void sum_shards(std::int32_t stage, const std::vector<GpuMatrix>& matrices, void* stream);
  /// All processes get the shards of every replica.
  void gather_shards(std::int32_t stage, const std::vector<GpuMatrix>& matrices, void* stream);

  /// Waits until a stream has completed all its work. Throws Error if another process dies or
  /// aborts.
  void await(const GpuHandle& stream);

  void check() { ranks_->check(); }
  void abort() { ranks_->abort(); }

 private:
  std::size_t link_groups() const;
  std::vector<NcclRanks::Piece> pieces_of(std::int32_t stage,
                                          const std::vector<GpuMatrix>& matrices) const;
  std::optional<std::size_t> group_of_stage(std::int32_t stage) const;
  std::optional<std::size_t> group_of(const PlannedTransfer& transfer) const;
  void carry_one(const PlannedTransfer& transfer, std::optional<std::size_t> group,
                 const FindBuffers& find, void* stream);
  void add_gathering_groups();
  void warm_up();
  void warm_up_group(std::size_t group, void* stream);

  const GpuMachine& machine_;
  const Schedule& schedule_;
  const RankPlan& plan_;
  StepProtocol& protocol_;
  JobPart part_;
  std::vector<bool> gathered_;     ///< [stage]: the schedule gathers its parameters
  std::vector<RankGroup> groups_;  ///< per replica the links, in order; then stages, then gathers
  std::size_t stage_groups_ = 0;   ///< number of groups of stages, and of gathers if there are any
  GpuHandle tokens_;               ///< buffer for tokens; outlives the communicators
  std::optional<NcclRanks> ranks_;
};

}  // namespace bubblescope::exec
