// Adds up what parts of ops cost: how long ranks wait for collectives within their ops, how much
// lanes slow each other. All of it is busy time, because an op is busy until its last part ends.
#pragma once

#include <string>
#include <vector>

#include "sim/ir/timeline.h"
#include "sim/model/part_costs.h"

namespace bubblescope::inline sim {

/// A part of all ops of one kind.
struct PartReport {
  std::string name;  ///< "B.combine"
  PartLane lane = kComputeLane;
  std::vector<Nanos> exposed;  ///< per rank: its compute lane waits for this part
  std::vector<Nanos> slowed;   ///< per rank: the part takes longer than alone
};

struct PartsReport {
  std::vector<PartReport> parts;  ///< by the kind of their op, then as the file lists them
  std::vector<PlacedRun> placed;  ///< every op and pair that has parts
  std::vector<PartRun> runs;      ///< to which `placed` refers

  Nanos exposed(std::size_t rank) const;
  Nanos slowed(std::size_t rank) const;
};

/// Adds up the runs of all ops. Where a rank is slow, parts stretch with their op.
PartsReport account_for_parts(const Program& program, const Timeline& timeline,
                              const PartCosts& costs);

/// The same for runs that are placed already.
PartsReport account_for_parts(const Program& program, const Timeline& timeline,
                              std::vector<PlacedRun> placed, std::vector<PartRun> runs);

}  // namespace bubblescope::inline sim
