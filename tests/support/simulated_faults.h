// Faults of the simulated GPU: what a device and its driver can do to a program that waits for
// them.
#pragma once

#include "exec/gpu/calls.h"

namespace bubblescope::tests {

/// Returns calls of which one fails. `fault` is a kind and the second of the process from which on
/// the next step is hit, "hang:2.5":
///
///   hang    a kernel never ends
///   block   a launch never returns
///   queue   a launch returns only when the gate that holds the device back has ended by itself
///   lost    the process is killed
///
/// Null or empty: nothing fails. Ends the process for anything else.
const BubblescopeGpu& with_simulated_fault(const BubblescopeGpu& calls, const char* fault);

}  // namespace bubblescope::tests
