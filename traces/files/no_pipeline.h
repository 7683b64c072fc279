// The error for a valid file that contains no trace of a pipeline. Such a file may be left out of a
// folder of traces; a damaged file may not.
#pragma once

#include "sim/ir/error.h"

namespace bubblescope::traces {

class NoPipeline : public Error {
 public:
  using Error::Error;
};

}  // namespace bubblescope::traces
