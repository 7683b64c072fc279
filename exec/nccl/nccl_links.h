// The messages and sums of one rank's plan over NCCL.
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

/// Where the bytes of a transfer are, at the end that is here: as many buffers, of the same sizes,
/// as at the other end.
using FindBuffers = std::function<std::vector<NcclRanks::Buffer>(const PlannedTransfer& transfer)>;

class NcclLinks {
 public:
  /// All processes make it at the same time: communicators for all ranks, for each directed link
  /// and for the ranks that hold the same stage, on which something has been sent already when this
  /// returns. Nothing is copied. Throws Error.
  NcclLinks(const NcclPlace& place, const GpuMachine& machine, const Schedule& schedule,
            const RankPlan& plan, StepProtocol& protocol);

  /// Puts an instruction's transfers on a stream.
  void carry(InstructionId id, const FindBuffers& find, void* stream);

  /// Whether another process has a replica of a stage.
  bool is_shared(std::int32_t stage) const { return group_of_stage(stage).has_value(); }

  /// Whether copies share a stage's parameters out.
  bool gathers(std::int32_t stage) const {
    return gathered_[static_cast<std::size_t>(stage)] && is_shared(stage);
  }

  // What goes on a stream, in place, among the processes that hold a stage:
  /// the sum for all,
  void sum(std::int32_t stage, const std::vector<NcclRanks::Buffer>& values, void* stream);
  /// the sum for each copy's own shards of float32 matrices,
  void sum_shards(std::int32_t stage, const std::vector<GpuMatrix>& matrices, void* stream);
  /// every copy's own shards for all.
  void gather_shards(std::int32_t stage, const std::vector<GpuMatrix>& matrices, void* stream);

  /// Waits until a stream has run all that is on it, as long as the other processes are there.
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
  std::vector<bool> gathered_;     ///< [stage]: the schedule says when
  std::vector<RankGroup> groups_;  ///< of every copy's links, in their order; those of stages;
  std::size_t stage_groups_ = 0;   ///< so many of these, and for gathers as many again
  GpuHandle tokens_;  ///< memory for what carries nothing; freed when no communicator can use it
  std::optional<NcclRanks> ranks_;
};

}  // namespace bubblescope::exec
