// A workload: per rank, jobs that wait for jobs of the same rank and exchange messages, as other
// simulators read them. GOAL text holds all ranks in one file, Chakra has a file per rank.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/ir/error.h"

namespace bubblescope::traces {

enum class WorkloadKind : std::uint8_t { kCompute, kSend, kReceive, kCollective };

struct WorkloadJob {
  WorkloadKind kind = WorkloadKind::kCompute;
  std::string name;  ///< "l7", or a node's name and id
  std::optional<std::int64_t>
      peer;                         ///< of a message, the other rank; none: a receive from any rank
  std::optional<std::int64_t> tag;  ///< of a message; none: a receive with any tag
  std::int64_t bytes = 0;           ///< of a message, or of one rank's share of a collective
  std::string group;                ///< of a collective, the name of its ranks; empty: all ranks
  std::int64_t collective = 0;      ///< of a collective, its type as a number
  std::vector<std::uint32_t> waits_for = {};     ///< jobs of the same rank that must have ended
  std::vector<std::uint32_t> starts_after = {};  ///< jobs of the same rank that must have started
};

struct Workload {
  std::string name;
  std::string format;                           ///< "goal" or "chakra"
  std::vector<std::vector<WorkloadJob>> ranks;  ///< [rank]: its jobs, in the order of the file
};

/// Whether the first lines of a text are GOAL's: comments, then "num_ranks".
bool is_goal(std::string_view text);

/// The same for a file; false where there is none.
bool is_goal_file(const std::string& path);

/// Reads GOAL text. Throws Error with line and text where LogGOPSim's txt2bin would refuse it.
Workload parse_goal(std::string_view text, const std::string& file);

/// Whether this is the name of one of Chakra's files: "PREFIX.3.et".
bool is_chakra_name(const std::string& path);

/// One of Chakra's files: its name, and its content.
struct ChakraFile {
  std::string path;
  std::string content;
};

/// Reads one rank's trace per file; the names say which. Throws Error where ranks are missing, or a
/// file is damaged.
Workload parse_chakra(const std::vector<ChakraFile>& files);

}  // namespace bubblescope::traces
