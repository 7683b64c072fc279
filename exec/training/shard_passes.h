// The passes of a micro-batch through a shard of a split output layer (vocabulary_shard.h): pass S
// is the forward of a shard, pass T its full backward, or its weight gradient if the input gradient
// belongs to S.
#pragma once

#include <vector>

#include "exec/training/stage_messages.h"
#include "exec/training/trained_stages.h"
#include "exec/training/vocabulary_shard.h"

namespace bubblescope::exec {

class ShardPasses {
 public:
  /// References are not copied.
  ShardPasses(TrainedStages& stages, StageMessages& messages)
      : stages_(stages), messages_(messages) {}

  /// Runs an instruction of a shard. Throws Error if it runs before its inputs are there.
  void run(const Instruction& instruction);

  /// The statistics that shards send each other.
  ShardExchange& exchange() { return exchange_; }

 private:
  void run_forward(const Op& op);
  void send_early_grad(const Op& op);
  void end(const Op& op);
  std::vector<ShardStatistics> statistics_of(const Op& op);

  TrainedStages& stages_;
  StageMessages& messages_;
  ShardExchange exchange_;
};

}  // namespace bubblescope::exec
