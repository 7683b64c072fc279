// Timing: how long every instruction of a Program takes, alone and beside others.
#pragma once

#include <optional>
#include <vector>

#include "sim/model/contention.h"
#include "sim/model/traffic.h"

namespace bubblescope::inline sim {

/// The input of simulate(). Where messages share links or ops slow each other, an instruction's
/// time depends on what runs beside it, and `traffic` says how.
struct Timing {
  std::vector<Nanos> durations;         ///< per instruction, as if it ran alone
  std::vector<Nanos> gaps = {};         ///< those of price_gaps()
  std::optional<Traffic> traffic = {};  ///< nullopt: every instruction takes its duration

  /// Per instruction, the time that does not depend on others; of messages that share links, only
  /// their latency.
  const std::vector<Nanos>& fixed() const { return traffic ? traffic->fixed : durations; }
};

/// Finds the traffic of a Program; find_timing() in sim/predict adds the gaps. Throws Error where
/// the cluster or the contention does not cover the Program.
Timing make_timing(const Program& program, std::vector<Nanos> durations,
                   const std::optional<Cluster>& cluster,
                   const std::optional<Contention>& contention);

}  // namespace bubblescope::inline sim
