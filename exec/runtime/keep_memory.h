// What the heap does with memory that a step, or a configuration of a sweep, gives back.
#pragma once

namespace bubblescope {

/// From now on the process keeps what it frees. Else the C library returns large blocks to the
/// system, and every step's forwards, every configuration of a sweep, wait for their pages anew: as
/// much as a fifth of a training step's time, and the more the longer a schedule holds them.
/// Nothing where the library has no such setting.
void keep_freed_memory();

}  // namespace bubblescope
