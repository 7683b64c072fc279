// Gradients of stages whose weights several ranks hold, while a step reduces them. REDUCE_GRAD is a
// post on each of these ranks, which puts the rank's own gradients here; where there are more than
// two, a join of all posts; then the work on each, which takes their sum.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "exec/runtime/processes.h"
#include "exec/training/matrix.h"
#include "exec/training/updates_inside.h"
#include "sim/ir/program.h"

namespace bubblescope {

/// Any thread may call.
class GradientExchange {
 public:
  /// The program is not copied.
  GradientExchange(const Program& program, const Processes& processes);

  /// Whether a reduction waits for posts: one of a stage on a single rank does not.
  bool sums(InstructionId reduction) const { return !posts_of(program_, reduction).empty(); }

  /// What a post hands on.
  void put(InstructionId post, std::vector<Matrix> gradients);

  /// The sum of all that the posts behind which this one stands handed on, by stage and rank.
  /// Throws Error where one has not.
  std::vector<Matrix> sum(InstructionId reader);

  /// For readers in other processes.
  Blob pack(InstructionId post);

 private:
  struct Posted {
    std::vector<Matrix> gradients;
    std::int32_t readers = 0;  ///< here, that have not come yet
  };

  std::int32_t readers_of(InstructionId post) const;
  const std::vector<Matrix>& find(InstructionId post, InstructionId reader);
  void let_go(InstructionId post);

  const Program& program_;
  std::map<InstructionId, std::int32_t> readers_;  ///< of each post, in this process
  std::mutex mutex_;
  std::map<InstructionId, Posted> posted_;
};

}  // namespace bubblescope
