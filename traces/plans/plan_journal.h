// The results of a sweep so far, in a file to which they are appended as they come.
//
// The first line states the question; each further line is the result of one configuration, in any
// order:
//   bubblescope-plan-journal/1 8c54…0e {"arguments":["--pp","4"],"fingerprint":"37…"}
//   91fa…c2 {"at":3,"refusal":"","excess":0.0,"plan":{"step_ns":52000000,…}}
// Each line carries a checksum, so that truncated or corrupted lines are ignored. A journal is
// data: its arguments state the question of the sweep, and cannot name a file to read or write.
#pragma once

#include <cstddef>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "sim/analysis/plan.h"

namespace bubblescope::traces {

struct PlanJournal {
  std::vector<std::string> arguments;       ///< of the plan, without those that control how it runs
  std::string fingerprint;                  ///< digest of the arguments, their files, the program
  std::map<std::size_t, Outcome> outcomes;  ///< by index in the whole sweep; of shapes only
  std::size_t size = 0;                     ///< in bytes, of all whole lines; 0: nothing is there
};

/// Returns what may be the name of a file in a word: all of FILE, and the end of --costs=FILE.
std::string file_of(const std::string& word);

/// Digests arguments, the files that they name, and the program's version. Throws Error for "-",
/// which cannot be read again.
std::string compute_fingerprint(const std::vector<std::string>& arguments);

/// Reads a journal. Throws Error for a file of another kind, or with a corrupted first line.
PlanJournal read_plan_journal(const std::string& path);

/// Returns the file to append to, with a first line and without what follows the last whole one.
/// Throws Error.
std::ofstream open_plan_journal(const std::string& path, const PlanJournal& journal);

/// Appends the result of a configuration. It is safe once the file is flushed.
void add_outcome(std::ofstream& file, std::size_t at, const Outcome& outcome);

}  // namespace bubblescope::traces
