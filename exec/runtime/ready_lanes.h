// The compute lanes of ranks that choose what they run, shared by the threads of a process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "exec/runtime/ready_queue.h"
#include "sim/ir/program.h"

namespace bubblescope::exec {

/// Any thread may add ready ops; a lane's queue is its own thread's. Without a policy there is no
/// such lane.
class ReadyLanes {
 public:
  /// `program` is not copied.
  ReadyLanes(const std::optional<ReadyPolicy>& policy, const Program& program);

  /// Whether the order of the lane is a hint.
  bool chooses(std::uint32_t lane) const { return lane < queues_.size(); }
  Nanos tie_wait() const { return tie_wait_; }
  /// Whether both are ops of one pair, in a lane that chooses.
  bool are_paired(InstructionId left, InstructionId right) const {
    return place_of_[left] == place_of_[right];
  }

  /// Returns to the start of all orders. Call only while no lane runs.
  void rewind();

  /// Notes that the inputs of an op are there. Does nothing for other lanes.
  void add_ready_op(InstructionId id);

  /// The lane's queue, with all that was added; `find_time` is when the inputs of an op were there.
  ReadyQueue& update(std::uint32_t lane, const std::function<Nanos(InstructionId)>& find_time);

 private:
  struct ReadyOps {
    std::mutex mutex;
    std::vector<InstructionId> ids;
  };

  const Program& program_;
  Nanos tie_wait_ = 0;
  std::vector<ReadyQueue> queues_;         ///< [rank]
  std::vector<std::size_t> place_of_;      ///< [instruction] of a compute lane
  std::unique_ptr<ReadyOps[]> ready_ops_;  ///< [rank]: not in the queue yet
};

}  // namespace bubblescope::exec
