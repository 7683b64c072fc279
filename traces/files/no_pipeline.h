// The error for a valid file that contains no trace of a pipeline. Such a file may be left out of a
// folder of traces; a damaged file may not.
#pragma once

#include "sim/ir/error.h"

namespace bubblescope::traces {

class NoPipeline : public Error {
 public:
  using Error::Error;
};

/// The error for a recording in which nothing ran: a profiler writes one if it is stopped when a
/// step has just begun. Beside other recordings it may be left out, even if it is named like them.
class EmptyRecording : public NoPipeline {
 public:
  using NoPipeline::NoPipeline;
};

}  // namespace bubblescope::traces
