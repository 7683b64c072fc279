// What a reader says of a sound file that is no trace of a pipeline: in a folder of traces it may
// be left out, where a damaged file may not.
#pragma once

#include "sim/ir/error.h"

namespace bubblescope::traces {

class NoPipeline : public Error {
 public:
  using Error::Error;
};

}  // namespace bubblescope::traces
