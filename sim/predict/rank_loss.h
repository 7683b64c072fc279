// The cost of losing a rank: a rank of one replica of a data-parallel job dies, and its
// micro-batches go to the same rank of the other replicas (sim/predict/lose_rank.h). The report has
// the step in which it dies, and the steps after that.
#pragma once

#include <optional>
#include <string>

#include "sim/predict/lose_rank.h"
#include "sim/predict/predict.h"

namespace bubblescope::inline sim {

struct RankLoss {
  LostRank lost;
  std::optional<Nanos> at;  ///< from the step's start; nullopt: between two steps
  Nanos detection = 0;      ///< from then until others take its micro-batches
};

/// A step, and the most micro-batches that one of its ranks holds.
struct StepCost {
  Nanos step = 0;
  double peak = 0;
};

/// The step in which the rank dies.
struct InterruptedStep {
  StepCost cost;
  Nanos lost_work = 0;  ///< that of the lost rank until then, which its peers repeat
};

struct LossReport {
  RankLoss loss;
  std::int32_t microbatches = 0;  ///< of each replica
  StepCost healthy;
  std::optional<InterruptedStep> interrupted;  ///< where it is known when the rank dies
  StepCost rerouted;                           ///< the next steps
  Nanos bound = 0;                             ///< no order of the next steps' ops is faster
  /// The same micro-batches on the other replicas alone, each of which has `left_microbatches`;
  /// nullopt: there is no such schedule.
  std::optional<StepCost> without_replica;
  std::int32_t left_microbatches = 0;
  std::string left_refusal;  ///< why there is none; empty where there is, or it is not known
};

/// Returns the number of micro-batches of each of the other replicas, if the damaged one is left
/// out.
std::int32_t count_left_microbatches(std::int32_t microbatches, const LostRank& lost);

/// Throws Error for inputs that refer to single ranks or micro-batches of the pipeline (faults,
/// slow ranks, arrivals, networks, models), for costs that depend on other ops, and for moves that
/// bind more than ops to a rank (offload, sharding).
void expect_loss_config(const Config& config);

/// Returns the job without the rank. Of the orders that lose_rank() and the ready policies make, it
/// has the one that is fastest under the Config. No order holds more activations on any rank than
/// the one from lose_rank(). Throws Error for a Config that expect_loss_config() refuses.
ValidSchedule reroute(const ValidSchedule& pipeline, const LostRank& lost, const Config& config);

/// `pipeline` and `rerouted` have their moves; `left` is the pipeline with the micro-batches of
/// count_left_microbatches(). Throws Error where the rank dies after the step.
LossReport report_loss(const ValidSchedule& pipeline, const ValidSchedule& rerouted,
                       const std::optional<ValidSchedule>& left, const RankLoss& loss,
                       const Config& config);

}  // namespace bubblescope::inline sim
