// The results of a sweep so far, in a file to which they are appended as they come.
//
// The first line states the question; each further line is the result of one configuration, in any
// order:
//   bubblescope-plan-journal/1 8c54…0e {"arguments":["--…","4"],"fingerprint":"37…"}
//   91fa…c2 {"at":3,"refusal":"","excess":0.0,"plan":{"step_ns":52000000,…}}
// Each line carries a checksum, so that truncated or corrupted lines are ignored. A journal is
// data: its arguments state the question of the sweep, and cannot name a file to read or write.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sim/analysis/plan.h"
#include "traces/files/descriptor.h"

namespace bubblescope::traces {

struct PlanJournal {
  std::vector<std::string> arguments;       ///< of the plan, without those that control how it runs
  std::string fingerprint;                  ///< digest of the arguments, their files, the program
  std::map<std::size_t, Outcome> outcomes;  ///< by index in the whole sweep; of shapes only
  std::size_t size = 0;                     ///< in bytes, of all whole lines; 0: nothing is there
};

/// Returns what may be the name of a file in a word: all of FILE, and the end of NAME=FILE.
std::string file_of(const std::string& word);

/// Digests arguments, the files that they name, and the program's version. Throws Error for "-",
/// which cannot be read again.
std::string compute_fingerprint(const std::vector<std::string>& arguments);

/// Reads a journal; one that does not exist is empty. Throws Error for a file of another kind, or
/// with a corrupted first line.
PlanJournal read_plan_journal(const std::string& path);

/// A journal to append to. It is locked during its lifetime, so that no other process cuts off what
/// this one appends.
class PlanJournalFile {
 public:
  /// Opens the file, or creates an empty one. Throws Error, also where another process has it open.
  explicit PlanJournalFile(std::string path);

  /// Removes what follows the last whole line of `journal`, which was read since this file was
  /// opened, and writes the first line where there is none. Throws Error.
  void begin(const PlanJournal& journal);

  /// Appends whole lines, which are kept once this returns. Throws Error.
  void append(std::string_view lines);

 private:
  std::string path_;
  Descriptor file_;
};

/// Returns the line with the result of a configuration.
std::string write_outcome(std::size_t at, const Outcome& outcome);

}  // namespace bubblescope::traces
