// What a sweep has found so far, on disk: a sweep that was stopped goes on from it, and the shards
// of one sweep are put together from theirs.
//
// One line says whose results follow, then one line per configuration, in any order:
//   bubblescope-plan-journal/1 8c54…0e {"arguments":["--pp","4"],"configurations":16,…}
//   91fa…c2 {"at":3,"plan":{"step_ns":52000000,…}}
// Each line carries a checksum, so that what a crash cut off or a disk spoiled is not believed. The
// file is data: its arguments say what was asked, and can name no file to read or write.
#pragma once

#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/analysis/plan.h"

namespace bubblescope {

/// A part of a sweep: of every `count` configurations the one at `index`, from 0.
struct Shard {
  std::size_t index = 0;
  std::size_t count = 1;

  bool operator==(const Shard&) const = default;
};

/// Whose results a journal has.
struct JournalOwner {
  std::vector<std::string> arguments;  ///< of the plan, without those that say how it runs
  std::string fingerprint;             ///< of them, of the files they name and of the program
  std::size_t configurations = 0;      ///< of the whole sweep
  Shard shard;

  bool operator==(const JournalOwner&) const = default;
};

struct PlanJournal {
  JournalOwner owner;
  std::map<std::size_t, Outcome> outcomes;  ///< by configuration of the whole sweep
};

/// A number for arguments and for the files that some of them name: other ones, another number.
std::string fingerprint_of(const std::vector<std::string>& arguments);

/// What a journal holds; lines that are cut off or spoiled are left out. Nothing where there is no
/// file, or one without a whole first line. Throws Error for a file that is something else.
std::optional<PlanJournal> read_plan_journal(const std::string& path);

/// Writes a journal as results come.
class PlanJournalWriter {
 public:
  /// Replaces what is there by the journal, in one go, and adds to it from there on. Throws Error.
  PlanJournalWriter(std::string path, const PlanJournal& journal);

  /// Adds what became of a configuration; it is kept from the next flush() on.
  void add(std::size_t at, const Outcome& outcome);
  /// Gives everything to the system: what happens to this process takes nothing back.
  void flush();

 private:
  std::string path_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
};

}  // namespace bubblescope
