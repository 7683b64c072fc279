// The tracks of a trace: one per lane and one per link, more where slices overlap.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/ir/program.h"
#include "sim/ir/timeline.h"

namespace bubblescope::traces {

struct TraceThread {
  std::int32_t rank = 0;
  std::int32_t tid = 0;  ///< 1 is the compute lane; then other lanes, then links by peer
  std::string name;      ///< "compute", "send → rank 1", "send → rank 1 (2)"
};

/// The slice of an instruction. A wait is shown for as long as it blocks its lane.
struct TraceSlice {
  InstructionId id = 0;
  Nanos start = 0;
  Nanos end = 0;
  std::uint32_t thread = 0;  ///< index into TraceThreads::threads
};

/// Within a thread no two slices overlap.
struct TraceThreads {
  std::vector<TraceThread> threads;  ///< by rank and tid
  /// By start, ties by id, so that dependencies come first. Posts, and waits that block nothing,
  /// are left out.
  std::vector<TraceSlice> slices;
};

TraceThreads assign_threads(const Program& program, const Timeline& timeline);

}  // namespace bubblescope::traces
