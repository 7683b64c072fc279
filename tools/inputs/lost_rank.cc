// Builds the schedules that a job with a lost rank is compared with.
#include "tools/inputs/lost_rank.h"

#include <cstdint>
#include <optional>
#include <variant>

#include "sim/model/schedule_def.h"
#include "sim/model/schedule_refusal.h"
#include "sim/predict/moves.h"
#include "tools/inputs/load_schedule.h"
#include "tools/inputs/schedule_request.h"

namespace bubblescope::tools {

namespace {

/// The pipeline of a replica that has a part of the damaged one's micro-batches, or why there is
/// none.
std::variant<ValidSchedule, std::string> build_left(const std::string& name,
                                                    std::int32_t microbatches,
                                                    const PredictInputs& inputs) {
  if (is_schedule_file(name)) return "a schedule file has a fixed number of micro-batches";
  const PredictInputs own = inputs.with([&](PredictOptions& flags) {
    flags.shape.microbatches = microbatches;
    flags.model.global_batch.reset();
  });
  const ScheduleDef& def = find_schedule(name);
  const ScheduleRequest request = make_request(def, own);
  if (!refuse_schedule(def, request).empty()) return name + " cannot have so many";
  return apply_moves(build_schedule(def, request), inputs.config().moves);
}

}  // namespace

ValidSchedule reroute_pipeline(const ValidSchedule& pipeline, const PredictInputs& inputs) {
  return reroute(pipeline, inputs.flags().loss->lost, inputs.config());
}

LossReport report_lost_rank(const std::string& name_or_path, const ValidSchedule& pipeline,
                            const ValidSchedule& rerouted, const PredictInputs& inputs) {
  const RankLoss& loss = *inputs.flags().loss;
  const std::int32_t left = count_left_microbatches(pipeline->shape.microbatches, loss.lost);
  const auto built = build_left(name_or_path, left, inputs);
  const auto* const schedule = std::get_if<ValidSchedule>(&built);
  LossReport report =
      report_loss(pipeline, rerouted, schedule == nullptr ? std::nullopt : std::optional(*schedule),
                  loss, inputs.config());
  if (schedule == nullptr) report.left_refusal = std::get<std::string>(built);
  return report;
}

}  // namespace bubblescope::tools
