// Sweeps that several processes share, and that continue where an earlier run ended: each process
// appends its results to a journal.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tools/plan/sweep.h"
#include "traces/plans/plan_journal.h"

namespace bubblescope::tools {

/// One shard of a sweep: out of every `count` configurations the one at `index`, from 0.
struct SweepShard {
  std::size_t index = 0;
  std::size_t count = 1;

  bool operator==(const SweepShard&) const = default;
};

/// Parses "2/4", the second of four. Throws Error for anything else.
SweepShard parse_shard(const std::string& text);

/// Returns the shard that a launcher's environment gives this process: mpirun (OMPI_COMM_WORLD_*,
/// PMI_*), srun (SLURM_PROCID), Slurm's arrays (SLURM_ARRAY_TASK_*), or an array of sruns. nullopt
/// without a launcher, or with only one process. Throws Error for an environment that contradicts
/// itself.
std::optional<SweepShard> find_launched_shard();

/// The shard and the files of a sweep: from flags, and completed by find_journals().
struct SweepFiles {
  std::optional<SweepShard> shard;  ///< from --shard, or a launcher's
  std::string journal;              ///< of this process's results: from --resume
  std::vector<std::string> parts;   ///< journals that have all results together: from --merge
  bool launched = false;            ///< by mpirun or Slurm: the last process shows the plan
  traces::SweepQuestion question;

  bool any() const { return !journal.empty() || !parts.empty(); }
};

/// Finds the journals of a plan with these flags. Throws Error where there are some and a flag has
/// "-", which cannot be read again.
SweepFiles find_journals(SweepFiles files, const std::vector<std::string>& arguments);

/// Shows a plan, from every outcome in the order of the configurations. Returns the exit status.
using ShowPlan = std::function<int(std::vector<Outcome> outcomes)>;

/// Evaluates what is missing of this process's shard, and appends it to its journal. Calls `show`
/// with the results of the whole sweep, unless another process has them or will. Throws Error, and
/// InterruptedSweep where Ctrl-C ended it.
int run_sweep(const SweepFiles& files, const std::vector<Configuration>& configurations,
              const MakeEvaluate& make_evaluate, SweepOptions options, const ShowPlan& show);

}  // namespace bubblescope::tools
