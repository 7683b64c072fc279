// Gradient reductions within a step, for stages whose weights several ranks hold. REDUCE_GRAD
// consists of a post on each of these ranks, which stores the rank's gradients here; with more than
// two ranks, a join of all posts; and the work on each rank, which takes the sum.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "exec/runtime/processes.h"
#include "exec/training/matrix.h"
#include "exec/training/program_updates.h"
#include "sim/ir/program.h"

namespace bubblescope::exec {

/// All functions are thread-safe.
class GradientExchange {
 public:
  /// `program` is not copied.
  GradientExchange(const Program& program, const Processes& processes);

  /// Whether a reduction has posts. A stage on a single rank has none.
  bool sums(InstructionId reduction) const { return !posts_of(program_, reduction).empty(); }

  /// Stores the gradients of a post.
  void put(InstructionId post, std::vector<Matrix> gradients);

  /// The sum of the gradients of the posts that `reader` waits for, added by stage and rank. Throws
  /// Error if one of them has not posted.
  std::vector<Matrix> sum(InstructionId reader);

  /// Returns the gradients of a post, for a reader in another process.
  Blob pack(InstructionId post);

 private:
  struct Posted {
    std::vector<Matrix> gradients;
    std::int32_t readers = 0;  ///< readers of this process that have not read yet
  };

  std::int32_t readers_of(InstructionId post) const;
  const std::vector<Matrix>& find(InstructionId post, InstructionId reader);
  void release(InstructionId post);

  const Program& program_;
  std::map<InstructionId, std::int32_t> readers_;  ///< [post]: its number in this process
  std::mutex mutex_;
  std::map<InstructionId, Posted> posted_;
};

}  // namespace bubblescope::exec
