// The times of ops in an Nsight Systems recording: those of the device, or of the host where an op
// launches nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "traces/files/trace_format.h"
#include "traces/measured/nsys_process_ops.h"
#include "traces/measured/nsys_recording.h"

namespace bubblescope::traces {

/// An op, or the message that brought its input.
struct NsysTimedOp {
  ObservedOp op;          ///< without a recorder
  std::size_t range = 0;  ///< index into NsysProcessOps::ops
};

/// Times the ops of a process. `path` is for messages. Throws Error where one range is two ops that
/// nothing tells apart.
std::vector<NsysTimedOp> time_ops(const NsysRecording& recording, std::int64_t process,
                                  const NsysProcessOps& found, const std::string& path);

}  // namespace bubblescope::traces
