// Numbers the replicas of all stages.
#include "exec/training/stage_replicas.h"

namespace bubblescope::exec {

StageReplicas::StageReplicas(const Schedule& schedule)
    : schedule_(schedule), sharing_(static_cast<std::size_t>(schedule.stages_per_pipeline())) {
  for (std::int32_t stage = 0; stage < schedule.stages(); ++stage) {
    const auto index = static_cast<std::size_t>(stage);
    first_.push_back(places_.size());
    for (std::int32_t replica = 0; replica < schedule.replicas(stage); ++replica) {
      sharing_[index % sharing_.size()].push_back(places_.size());
      places_.push_back({stage, schedule.rank_of_stage[index] + replica});
    }
  }
}

}  // namespace bubblescope::exec
