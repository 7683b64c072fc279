// Shards of one sweep across processes, and where their results are kept.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/plan/sweep.h"
#include "traces/plans/plan_journal.h"

namespace bubblescope::tools {

/// Parses "2/4", the second of four. Throws Error for anything else.
traces::SweepShard parse_shard(const std::string& text);

/// Returns the shard that a launcher's environment gives this process: mpirun (OMPI_COMM_WORLD_*,
/// PMI_*), Slurm's arrays (SLURM_ARRAY_TASK_*), srun (SLURM_PROCID), or an array of sruns. nullopt
/// without a launcher, or with only one process. Throws Error for an environment that contradicts
/// itself.
std::optional<traces::SweepShard> find_launched_shard();

/// Throws Error where a question from a journal names a file, because the user did not type it.
void expect_no_file(const std::vector<std::string>& question);

/// Merges the journals of all shards of one sweep. Throws Error where they belong to different
/// sweeps, or are incomplete.
traces::PlanJournal merge_journals(const std::vector<std::string>& paths);

/// The shard and the files of a sweep.
struct SweepFiles {
  std::optional<traces::SweepShard> shard;   ///< from --shard; nullopt: the launcher's, if any
  std::string journal;                       ///< path of --resume
  std::optional<traces::PlanJournal> whole;  ///< from --merge: nothing is left to evaluate
};

/// Runs a sweep, or this process's shard of it, resuming from its journal.
class JournaledSweep {
 public:
  /// `question` are the plan's flags.
  JournaledSweep(std::vector<std::string> question, SweepFiles files);

  /// Returns every outcome in the order of the configurations, from journals or newly evaluated.
  /// nullopt where this was a shard and another process shows the plan.
  std::optional<std::vector<Outcome>> run(const std::vector<Configuration>& configurations,
                                          const MakeEvaluate& evaluate, SweepOptions options);

  /// Removes the files of a launched sweep's shards, once the plan has been shown.
  void finish() const;

 private:
  std::string path_of(std::size_t shard) const;
  traces::PlanJournal resume() const;
  traces::PlanJournal run_shard(const std::vector<Configuration>& configurations,
                                const MakeEvaluate& evaluate, SweepOptions options) const;
  std::optional<traces::PlanJournal> merge_launched();

  traces::JournalOwner owner_;
  SweepFiles files_;
  bool launched_ = false;  ///< by mpirun or Slurm: the last process merges all shards
  bool is_last_ = false;
};

}  // namespace bubblescope::tools
