// Stops the heap from returning freed memory to the system.
#pragma once

namespace bubblescope::exec {

/// From now on the process keeps memory that it frees. Otherwise the C library returns large blocks
/// to the system, and every training step, or configuration of a sweep, faults their pages in
/// again. That can take a fifth of a training step. Does nothing if the C library has no such
/// option.
void keep_freed_memory();

}  // namespace bubblescope::exec
