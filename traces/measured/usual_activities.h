// Tells the work of every step from what a program does now and then.
#pragma once

#include "traces/files/trace_format.h"

namespace bubblescope::traces {

/// Removes activities whose step follows from the ops around them and that are no usual part of a
/// step:
/// - before the first op of their rank, but for collectives and loading data: initialization,
/// - into the ops of another step: what runs beside the steps, as a thread that loads data does,
/// - by names that fewer than half of the rank's steps have: an evaluation, a checkpoint. A note
///   names these.
/// Every activity has a step, as place_activities() finds it.
ObservedTrace keep_usual_activities(ObservedTrace trace);

}  // namespace bubblescope::traces
