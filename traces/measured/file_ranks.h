// Tells the files of a job apart, where each numbers its processes for itself.
#pragma once

#include "traces/files/trace_format.h"

namespace bubblescope::traces {

/// Chrome traces of several files may each have one process, of the same number in all: that states
/// no rank. The stages of ops decide instead; else the numbers in the names of the files, as a
/// doubt says. Throws Error where nothing tells them apart. Files that all run one and the same
/// stage are no pipeline, as a fault says. Other traces are returned as they are.
ObservedTrace tell_files_apart(ObservedTrace trace);

}  // namespace bubblescope::traces
