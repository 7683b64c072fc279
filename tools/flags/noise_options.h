// Flags of noise: how steps differ from each other, and how many are simulated.
#pragma once

#include <optional>
#include <vector>

#include "sim/model/noise.h"
#include "tools/flags/command_flags.h"

namespace bubblescope::tools {

struct NoiseOptions {
  Noise noise;
  bool is_given = false;  ///< by any flag, also as 0 %: it replaces the noise of a cost file
  std::vector<SlowRank> slow_ranks;
  std::size_t seeds = 1000;  ///< scenarios, where the noise is random
  bool sensitivity = false;
};

void add_noise_options(CommandFlags& app, NoiseOptions& options);

/// Warns about flags that choose among noises where there is none. `of_costs` is the noise of the
/// cost file, if it has any.
void warn_without_noise(const CommandFlags& app, const NoiseOptions& options,
                        const std::optional<Noise>& of_costs);

}  // namespace bubblescope::tools
