// Assembles observed ops into whole steps: which op ran where, in which order, on which message.
//
// A chain of values: a reader returns an ObservedTrace, whose ops are completed by what the other
// ranks recorded (complete_ops.h, separate_replicas.h) and grouped by step (group_steps.h). The
// order of each step makes a draft (build_step.h); drafts give the clocks (rank_clocks.h), and
// these the times.
#pragma once

#include <vector>

#include "sim/analysis/late_replicas.h"
#include "traces/files/trace_format.h"

namespace bubblescope::traces {

/// The steps of a trace in order of replica and step, with what ran around them.
struct AssembledSteps {
  std::vector<MeasuredStep> steps;
  std::vector<WholeStep> whole_steps = {};  ///< from the activities
  OuterActivities outer_activities = {};  ///< the activities, where it is known who waits for whom
  std::vector<ObservedActivity> activities = {};  ///< of all steps, also of those that are left out
  LateReplicas late = {};                         ///< empty where replicas have no trace
  bool lacks_replicas = false;                    ///< some have no trace
  bool evaluated_within = false;                  ///< evaluations within steps are left out
  Remarks remarks = {};                           ///< the reader's, and those on the steps
};

/// Assembles the steps of a trace. Each is lowered as data flow: its messages are those of the
/// trace where both ends were seen, and take no time otherwise. Where ops of a rank overlap,
/// because clocks are inexact, an op is cut where the next one starts; the remarks say how many ops
/// and by how much, and which steps were left out because they lack ops that others have.
/// Throws Error where no step is complete, naming what is missing.
AssembledSteps assemble_steps(ObservedTrace trace);

}  // namespace bubblescope::traces
