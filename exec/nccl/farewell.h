// The end of a run of several processes: all wait for the one that speaks, which may still have
// files to write, or a serial reference to train.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "exec/backend.h"
#include "exec/nccl/process_link.h"
#include "exec/processes.h"

namespace bubblescope {

/// The lowest rank that is not known to be gone.
std::int32_t find_speaker(const ProcessLink& link);

/// The speaker tells the others that it is done; they wait until it does, for as long as it shows
/// that it lives. Returns what became of it where it did not: "rank 0 is gone: ..."; else nothing.
std::string say_farewell(ProcessLink& link, const Limits& limits);

/// The link as the rest of the program has it; at its end `at_end` is told what say_farewell()
/// returns. `link` is not copied.
Processes::Link as_processes(ProcessLink& link, const Limits& limits,
                             std::function<void(const std::string& lost)> at_end);

}  // namespace bubblescope
