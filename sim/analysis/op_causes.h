// Ops that take longer than others as causes: single ones, from some step on, of some stages, or of
// some micro-batches.
#pragma once

#include <optional>

#include "sim/analysis/cause_evidence.h"
#include "sim/analysis/cause_list.h"
#include "sim/analysis/long_ops.h"

namespace bubblescope::inline sim {

/// Adds single ops that take far longer than others. The other causes are what is left without
/// them, so that their time is not counted twice. Where they are not rare, they count only if a
/// single worker has them: it is slow for some of its micro-batches.
void add_long_ops(CauseList& causes, const CauseEvidence& evidence);

/// Finds long ops that are too many to be a cause of add_long_ops(). nullopt if ops of several
/// workers are few, or follow a pattern.
std::optional<ManyLongOps> find_many_long_ops(const CauseEvidence& evidence);

/// Adds a lasting change of speed.
void add_drift(CauseList& causes, const CauseEvidence& evidence);

/// Adds steps that are slow on all ranks, unless that is a lasting change.
void add_common_slow_steps(CauseList& causes, const CauseEvidence& evidence);

/// Adds a stage with more or less work than others, and unequal sequence lengths.
void add_unequal_work(CauseList& causes, const CauseEvidence& evidence);

/// Adds ops that differ without a pattern, unless unequal micro-batches are a cause, which the same
/// counterfactual removes.
void add_variation(CauseList& causes);

}  // namespace bubblescope::inline sim
