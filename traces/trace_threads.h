// The tracks of a trace: one per lane and one per link, more where things overlap in time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/ir/program.h"
#include "sim/ir/timeline.h"

namespace bubblescope {

struct TraceThread {
  std::int32_t rank = 0;
  std::int32_t tid = 0;  ///< 1 is the compute lane; then other lanes, then links by peer
  std::string name;      ///< "compute", "send → rank 1", "send → rank 1 (2)"
};

/// Which thread shows what: within a thread no two instructions overlap.
struct TraceThreads {
  std::vector<TraceThread> threads;      ///< by rank and tid
  std::vector<std::uint32_t> thread_of;  ///< per instruction, an index into `threads`
};

/// Instruction ids by start time, ties by id: so what an instruction waits for comes before it.
std::vector<InstructionId> order_by_start(const Timeline& timeline);

/// `by_start` is order_by_start(timeline).
TraceThreads assign_threads(const Program& program, const Timeline& timeline,
                            const std::vector<InstructionId>& by_start);

}  // namespace bubblescope
