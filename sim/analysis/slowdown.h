// Slowdown S: how much slower a job's steps are than if every op took the mean time of its kind, by
// the definitions of StragglerAnalysis (Lin et al. 2025, arXiv 2505.05713).
//
// A *worker* is one rank of one replica. T is the time of a step that is replayed with its ops' own
// durations, with its replicas coupled and with the activities around the ops (sim/analysis/
// job_program.h). *Fixing* gives an op or an activity the mean duration of its kind over all steps,
// replicas and stages, or, if it communicates, the median. The mean conserves work, so it is what
// balancing can reach. Ops of side stages are kinds of their own.
//   S             T over the time with everything fixed
//   S of x        the time with everything but x fixed, over the time with everything fixed;
//                 x is a kind of op or activity, a replica or a stage
//   S of a worker the smaller one of its replica's and its stage's
//   M_W           the part of T's excess that vanishes with the slowest 3 % of the workers fixed
//   M_S           the same for the last stage
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/analysis/job_program.h"

namespace bubblescope::inline sim {

struct WorkerSlowdown {
  std::int32_t replica = 0;  ///< counted from 0
  std::int32_t rank = 0;
  double slowdown = 1;  ///< S
};

/// One kind of activity besides the ops.
struct ActivitySlowdown {
  std::string name;
  bool communicates = false;
  double slowdown = 1;            ///< S
  std::vector<Nanos> saves = {};  ///< [step]: how much shorter T is if it takes no time
};

struct SlowdownReport {
  double slowdown = 1;           ///< S
  Nanos replayed = 0;            ///< mean T
  Nanos fixed = 0;               ///< mean time with everything fixed
  bool has_whole_steps = false;  ///< whether T includes the activities around the ops
  std::array<std::optional<double>, kOpKinds> by_kind;  ///< empty for kinds that do not occur
  std::vector<ActivitySlowdown> by_activity;
  std::vector<double> by_replica;
  std::vector<double> by_stage;              ///< [rank], over all replicas
  std::vector<WorkerSlowdown> by_worker;     ///< by replica and rank
  std::vector<std::vector<double>> by_step;  ///< [step]: S of each worker in that step alone
  std::size_t slowest_workers = 1;           ///< how many are the slowest 3 %
  double worker_share = 0;                   ///< M_W; 0 if nothing can be gained
  double last_stage_share = 0;               ///< M_S
};

/// Averages over the steps. Requires at least one step, and the same number of replicas in every
/// step. `activities`: per step, what runs besides the ops; empty where that is not known.
SlowdownReport find_slowdown(std::span<const ReplicatedStep> steps,
                             std::span<const std::vector<OuterActivity>> activities = {});

}  // namespace bubblescope::inline sim
