// Makes entries of stages from their kinds.
#include "sim/model/stage_kinds.h"

#include <utility>

namespace bubblescope::inline sim {

CostTable fit_stages(CostTable table, const Schedule& schedule) {
  const auto stages = static_cast<std::size_t>(schedule.stages_per_pipeline());
  if (table.stage_kinds.empty() || table.stages.size() == stages || stages < 2) return table;
  table.stages.assign(stages, table.stage_kinds[1]);
  table.stages.front() = table.stage_kinds[0];
  table.stages.back() = table.stage_kinds[2];
  return table;
}

}  // namespace bubblescope::inline sim
