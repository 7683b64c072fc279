// The ops that run on a device at every moment of a measured step.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "sim/ir/op.h"
#include "sim/ir/timeline.h"

namespace bubblescope::exec {

/// How many ops of each kind run at a moment.
using KindCounts = std::array<std::int32_t, kComputeKinds>;

/// The compute ops of one device; nothing runs before the first and after the last.
class BusyOps {
 public:
  BusyOps() = default;
  /// From the changes of the counts by time.
  explicit BusyOps(const std::map<Nanos, KindCounts>& changes);

  /// The mean number of busy ranks. Requires start < end.
  double mean_busy(Nanos start, Nanos end) const;

  /// Calls visit(nanos, counts) for every stretch of a time in which the same ops run.
  void visit(Nanos start, Nanos end,
             const std::function<void(Nanos nanos, const KindCounts& counts)>& visit) const;

 private:
  struct Moment {
    Nanos time = 0;
    KindCounts counts{};    ///< from this moment on
    double busy_until = 0;  ///< busy time of all ranks until this moment
  };

  double sum_until(Nanos time) const;
  std::vector<Moment>::const_iterator find_next(Nanos time) const;

  std::vector<Moment> moments_;
};

/// Whether an instruction is a compute op that takes time.
bool is_busy_op(const Program& program, const Timeline& timeline, InstructionId id);

/// The devices of a step, where this many neighbouring ranks share one each.
std::map<std::int32_t, BusyOps> find_busy_ops(const Program& program, const Timeline& timeline,
                                              std::int32_t ranks_per_device);

}  // namespace bubblescope::exec
