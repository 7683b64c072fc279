// The results of a sweep so far, on disk: an interrupted sweep resumes from its journal, and the
// shards of one sweep are merged from theirs.
//
// The first line identifies the sweep; each further line is the result of one configuration, in any
// order:
//   bubblescope-plan-journal/1 8c54…0e {"arguments":["--pp","4"],"configurations":16,…}
//   91fa…c2 {"at":3,"plan":{"step_ns":52000000,…}}
// Each line carries a checksum, so that truncated or corrupted lines are ignored. A journal is
// data: its arguments state the question of the sweep, and cannot name a file to read or write.
#pragma once

#include <cstddef>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/analysis/plan.h"

namespace bubblescope::traces {

/// One shard of a sweep: out of every `count` configurations the one at `index`, from 0.
struct SweepShard {
  std::size_t index = 0;
  std::size_t count = 1;

  bool holds(std::size_t at) const { return at % count == index; }
  bool operator==(const SweepShard&) const = default;
};

/// The sweep to which a journal belongs.
struct JournalOwner {
  std::vector<std::string> arguments;  ///< of the plan, without those that control how it runs
  std::string fingerprint;         ///< hash of the arguments, the files they name and the program
  std::size_t configurations = 0;  ///< of the whole sweep
  SweepShard shard;

  bool operator==(const JournalOwner&) const = default;
};

struct PlanJournal {
  JournalOwner owner;
  std::map<std::size_t, Outcome> outcomes;  ///< of the shard, by index in the whole sweep
};

/// Returns what may be the name of a file in a word: all of FILE, and the end of --costs=FILE.
std::string file_of(const std::string& word);

/// Hashes arguments, the files that they name, and the program's version. Throws Error for "-",
/// which cannot be read again.
std::string compute_fingerprint(const std::vector<std::string>& arguments);

/// Reads a journal; truncated or corrupted lines are left out. Returns nullopt where there is no
/// file, or its first line is incomplete. Throws Error for a file of another kind.
std::optional<PlanJournal> read_plan_journal(const std::string& path);

/// Replaces the file by `journal` in one go, and returns the file to append to. Throws Error.
std::ofstream write_plan_journal(const std::string& path, const PlanJournal& journal);

/// Appends the result of a configuration. It is safe once the file is flushed.
void add_outcome(std::ofstream& file, std::size_t at, const Outcome& outcome);

}  // namespace bubblescope::traces
