// The results of a sweep so far, in a file to which they are appended as they come.
//
// The first line states the question; each further line is the result of one configuration, in any
// order:
//   bubblescope-plan-journal/1 8c54…0e {"arguments":["--…","4"],"fingerprint":"37…"}
//   91fa…c2 {"at":3,"refusal":"","excess":0.0,"plan":{"step_ns":52000000,…}}
// A line counts only if writing its result again gives the same bytes, checksum included. A journal
// is data: its arguments state the question of the sweep, and cannot name a file to read or write.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "sim/analysis/plan.h"
#include "sim/ir/error.h"

namespace bubblescope::traces {

/// The question that a plan answers. Journals with different ones belong to different plans.
struct SweepQuestion {
  std::vector<std::string> arguments;  ///< of the plan, without those that control how it runs
  std::string fingerprint;             ///< digest of the arguments, their files, the program

  bool operator==(const SweepQuestion&) const = default;
};

struct PlanJournal {
  SweepQuestion question;
  std::map<std::size_t, Outcome> outcomes;  ///< by index of their configurations
  std::size_t size = 0;                     ///< in bytes, of all whole lines; 0: nothing is there
};

/// Digests the arguments with the files that they name. Throws Error for "-", which cannot be read
/// again.
SweepQuestion make_question(const std::vector<std::string>& arguments);

/// Returns the arguments of a journal. Throws Error where there is no journal, or where they name a
/// file, because the user did not type it.
std::vector<std::string> read_arguments(const std::string& path);

/// Reads a journal, without the lines that are not those of write_outcome() for one of these
/// configurations. One that does not exist is empty. Throws Error for a file of another kind, or
/// with a corrupted first line.
PlanJournal read_plan_journal(const std::string& path,
                              const std::vector<Configuration>& configurations);

/// Makes the Error for a part of a plan without results.
Error make_empty_error(const std::string& path);

/// Returns the first line of a journal.
std::string write_question(const SweepQuestion& question);

/// Returns the line with the result of a configuration.
std::string write_outcome(std::size_t at, const Outcome& outcome);

}  // namespace bubblescope::traces
