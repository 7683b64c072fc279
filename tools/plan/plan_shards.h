// Shards of one sweep across processes, and the journals that keep their results.
#pragma once

#include <cstddef>
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

/// Returns the question of a journal. Throws Error where there is no journal, or where the question
/// names a file, because the user did not type it.
std::vector<std::string> read_question(const std::string& path);

/// The shard and the files of a sweep.
struct SweepFiles {
  std::optional<SweepShard> shard;  ///< from --shard; nullopt: the launcher's, if any
  std::string journal;              ///< path of --resume
  std::vector<std::string> parts;   ///< paths of --merge: nothing is left to evaluate
};

/// Runs a sweep, or this process's shard of it, with its results in a journal where one is kept.
class JournaledSweep {
 public:
  /// `question` are the plan's flags.
  JournaledSweep(std::vector<std::string> question, SweepFiles files);

  bool has_journal() const { return !known_.fingerprint.empty(); }
  /// The journal that the results of this process go to; empty without one.
  std::string journal() const { return has_journal() ? path_of(shard_.index) : ""; }

  /// Returns every outcome in the order of the configurations, from journals or newly evaluated.
  /// nullopt where this was a shard and another process shows the plan. Throws InterruptedSweep
  /// where Ctrl-C ended it.
  std::optional<std::vector<Outcome>> run(const std::vector<Configuration>& configurations,
                                          const MakeEvaluate& evaluate, SweepOptions options);

  /// Removes the journals of a launched sweep, once the plan has been shown.
  void finish() const;

 private:
  std::string path_of(std::size_t shard) const;
  std::size_t add(const std::string& path, const std::vector<Configuration>& configurations);
  void evaluate_shard(const std::vector<Configuration>& configurations,
                      const MakeEvaluate& evaluate, SweepOptions options);
  bool take_plan(const std::vector<Configuration>& configurations);

  SweepFiles files_;
  SweepShard shard_;
  bool launched_ = false;  ///< by mpirun or Slurm: the last process shows the plan
  bool is_last_ = false;   ///< this is that process
  std::optional<traces::PlanJournalFile> file_;  ///< of this shard, locked until the end
  traces::PlanJournal known_;                    ///< the question, and all results that are known
};

}  // namespace bubblescope::tools
