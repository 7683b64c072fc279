// Joins the steps of the replicas of a job, which sim/ compares by their places.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/analysis/job_program.h"
#include "sim/analysis/late_replicas.h"
#include "sim/analysis/stragglers.h"
#include "traces/files/trace_format.h"
#include "traces/measured/assemble_steps.h"

namespace bubblescope::tools {

/// The steps' numbers, without repetition.
std::vector<std::int64_t> numbers_of(const std::vector<traces::MeasuredStep>& steps);

/// The numbers that the trace has for the replicas, without repetition. They may have gaps, where
/// no step of a replica is whole.
std::vector<std::int32_t> list_replicas(const std::vector<traces::MeasuredStep>& steps);

ObservedStep observe(const traces::MeasuredStep& step);

/// The steps with their replicas, in the order of list_replicas(), which begin as late as `late`
/// says; empty where some steps lack a replica.
std::vector<ReplicatedStep> join_replicas(const std::vector<traces::MeasuredStep>& steps,
                                          const LateReplicas& late = {});

/// The activities around the ops, in the order of join_replicas() and with the places of their
/// replicas in it; empty where those of some steps are not known.
std::vector<std::vector<OuterActivity>> activities_of(const traces::AssembledSteps& read);

}  // namespace bubblescope::tools
