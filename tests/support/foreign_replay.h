// An independent reader of exported files: reads GOAL text and Chakra traces, and runs them in time
// order by the rules of their simulators. It shares no code with the program.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace bubblescope::tests {

struct ForeignJob {
  enum class Kind { kCalculate, kSend, kReceive };
  Kind kind = Kind::kCalculate;
  std::int64_t duration = 0;  ///< for a send: the time its message is in transit
  int cpu = 0;                ///< calculations on one cpu of a rank run one at a time
  std::size_t peer = 0;
  std::uint64_t tag = 0;
  std::vector<std::size_t> waits_for;  ///< jobs of the same rank
};

/// [rank]: its jobs.
using ForeignTrace = std::vector<std::vector<ForeignJob>>;

/// Throws std::runtime_error for a line that LogGOPSim's grammar does not have. Takes the latency
/// from the -L in the comment.
ForeignTrace read_goal(const std::string& text);

/// One file per rank. Throws std::runtime_error for invalid protobuf.
ForeignTrace read_chakra(const std::vector<std::string>& files);

/// The end of the last job. Throws std::runtime_error for a deadlock.
std::int64_t replay_makespan(const ForeignTrace& trace);

}  // namespace bubblescope::tests
