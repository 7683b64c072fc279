// Finds contradictions within a profile of PyTorch. Its parts depend on each other, so that events
// which are lost, renamed or moved show:
//
//   Ev Idx 7 8 9 11 12         the host's events are numbered in order of time, without gaps
//   |--- outer ---|            events of one thread lie within each other or apart
//     |-- inner --|
//   aten::mm  s ---- f  MmBackward0      a flow leads from a call to its gradient function
//
// Launches and kernels: see device_contradictions.h.
#pragma once

#include <string>
#include <vector>

#include "traces/measured/chrome_events.h"
#include "traces/measured/device_contradictions.h"

namespace bubblescope::traces {

/// The ops of one profile.
struct ProfiledOps {
  std::vector<OpSpan> spans;
  bool are_annotated = true;  ///< otherwise their spans follow from what is checked
};

/// Returns the contradictions as whole sentences.
std::vector<std::string> find_contradictions(const ChromeEvents& events, const ProfiledOps& ops);

}  // namespace bubblescope::traces
