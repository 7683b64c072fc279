// One sweep by many processes: which part is this one's, and where its results are kept.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/sweep.h"
#include "traces/plan_journal.h"

namespace bubblescope {

/// "2/4", the second of four. Throws Error for anything else.
Shard parse_shard(const std::string& text);

/// The part that a launcher's environment gives this process: mpirun (OMPI_COMM_WORLD_*, PMI_*),
/// Slurm's arrays (SLURM_ARRAY_TASK_*), srun (SLURM_PROCID), or an array of sruns. Nothing where
/// there is no launcher, or only one process. Throws Error for an environment that contradicts
/// itself.
std::optional<Shard> launched_shard();

/// What a plan is asked: the words of a command line without the flags that say how it is run, kept
/// and shown.
std::vector<std::string> question_of(const std::vector<std::string>& arguments);

/// A question that a journal has, and nobody on the command line, may name no file. Throws Error.
void expect_no_file(const std::vector<std::string>& question);

/// Reads the journals of all shards of one sweep. Throws Error where they are of different ones, or
/// not complete.
PlanJournal merge_journals(const std::vector<std::string>& paths);

/// How a sweep is spread and kept.
struct SweepFiles {
  std::optional<Shard> shard;        ///< of --shard; else of the launcher, where there is one
  std::string journal;               ///< of --resume
  std::optional<PlanJournal> whole;  ///< of --merge: nothing is left to evaluate
};

/// Runs a sweep, or the part of it that is this process's, from where its journal stands.
class JournaledSweep {
 public:
  /// `arguments` are those of the sweep.
  JournaledSweep(std::vector<std::string> arguments, SweepFiles files);

  /// Every outcome, in the order of the configurations: those of the journals, and those that had
  /// to be evaluated. Nothing where this was a part and another process shows the plan.
  std::optional<std::vector<Outcome>> run(const std::vector<Configuration>& configurations,
                                          const MakeEvaluate& evaluate, SweepOptions options);

  /// The plan has been shown: what the parts of a launched sweep left is removed.
  void finish() const;

 private:
  std::string path_of(const Shard& shard) const;
  PlanJournal journal_of(const Shard& shard) const;
  PlanJournal run_own(const std::vector<Configuration>& configurations,
                      const MakeEvaluate& evaluate, SweepOptions options) const;
  std::optional<PlanJournal> put_together() const;

  JournalOwner owner_;
  SweepFiles files_;
  bool launched_ = false;  ///< by mpirun or Slurm: the last process puts all parts together
  bool is_last_ = false;
};

}  // namespace bubblescope
