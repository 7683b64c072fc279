// Vocabulary parallelism: every rank holds a shard of the output layer. Stage p + r is the shard of
// rank r, beside the chain of stages 0..p-1; of two chunks per rank 2p + r. Yeung et al.,
// "Balancing Pipeline Parallelism with Vocabulary Parallelism", 2024.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/model/schedule_def.h"

namespace bubblescope::schedules {

/// The ops of a rank, sorted by the times at which they run in a steady pipeline: the last stage of
/// the chain starts a micro-batch in every interval of F + B, beside which the output layer is
/// short. So what waits for another op comes later, and no order can deadlock.
class PassOrder {
 public:
  explicit PassOrder(const ScheduleRequest& request);

  /// A time after the start of an op's micro-batch on the last stage.
  struct Offset {
    std::int64_t intervals = 0;
    std::int64_t forwards = 0;
    std::int64_t backwards = 0;
    std::int64_t outputs = 0;  ///< passes of the output layer
  };
  void add(const Op& op, const Offset& offset);
  /// Returns what was added since the last call.
  RankOrder take();

 private:
  struct TimedOp {
    std::int64_t time;
    std::int64_t outputs;  ///< decides between equal times, and then `turn`
    int turn;
    Op op;
  };

  std::int32_t chain_;  ///< number of stages in the chain
  std::int64_t forward_ = 1;
  std::int64_t backward_ = 1;
  std::vector<TimedOp> ops_;
};

/// Refuses shapes with more edges between shards than fit into memory.
std::vector<std::string> refuse_many_barriers(const ScheduleRequest& request);

/// The passes of a micro-batch on all shards between which they exchange the maxima and sums of the
/// softmax: every second one waits for all first ones.
struct ShardBarrier {
  OpKind first = OpKind::kForward;
  OpKind second = OpKind::kBackward;
};

/// A schedule without an order, whose ranks have the stages of a chain and one shard each. The
/// shards read the last stage of the chain and return gradients to it.
Schedule place_shards(const ScheduleRequest& request, const std::vector<std::int32_t>& chain,
                      const ShardBarrier& barrier);

/// Builds the schedule with one stage of the chain per rank. `add_ops` adds a micro-batch's ops to
/// the order of a rank.
Schedule build_sharded(const ScheduleRequest& request,
                       const std::function<void(PassOrder& order, std::int32_t rank,
                                                std::int32_t microbatch)>& add_ops,
                       const ShardBarrier& barrier);

/// The time of one of the output layer's three GEMMs on a shard. Empty if it is not the same on
/// all shards, if B is not 2 F or if messages take time: then there is no closed form.
std::optional<Nanos> find_closed_form_gemm_time(const ScheduleRequest& request);

}  // namespace bubblescope::schedules
