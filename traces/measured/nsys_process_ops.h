// Finds the ops of a process in an Nsight Systems recording, as ranges of its host: those that have
// a name, or else what lies between Megatron-LM's messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "traces/measured/interleaved_calls.h"
#include "traces/measured/name_rules.h"
#include "traces/measured/nsys_ranges.h"
#include "traces/measured/nsys_recording.h"

namespace bubblescope::traces {

/// The ops of a process, and how they were found.
struct NsysProcessOps {
  std::vector<OpRange> ops = {};      ///< by start, with their steps
  std::vector<TimedCall> calls = {};  ///< Megatron-LM's messages
  std::vector<StepRange> marks = {};  ///< of mark_steps()
  bool lie_between_messages = false;
  bool have_chunks_by_order = false;    ///< those of the interleaved schedule
  bool have_unnamed_backwards = false;  ///< known by the launches of other threads
  bool overlap = false;
  bool are_uneven = false;                     ///< some were seen more often than others
  std::size_t outside_steps = 0;               ///< left out, because they lie in no step
  std::optional<std::string> unnumbered = {};  ///< describes ranges without a number: a doubt
};

/// Finds the ops of one process after another.
class NsysOpFinder {
 public:
  /// All must outlive this object. `path` is for messages.
  NsysOpFinder(const NsysRecording& recording, NameMatcher& names, const std::string& path)
      : recording_(recording), names_(names), path_(path) {}

  /// `ranges` are those of the process, by start. Throws Error where its messages contradict each
  /// other.
  NsysProcessOps find(std::int64_t process, const std::vector<HostRange>& ranges);

 private:
  NsysProcessOps find_named(std::int64_t process, const std::vector<HostRange>& ranges) const;
  std::vector<OpRange> find_between(std::int64_t process, const std::vector<TimedCall>& calls,
                                    std::int64_t thread) const;
  std::vector<OpRange> find_in_chunks(std::int64_t process, const std::vector<TimedCall>& calls,
                                      std::int64_t thread);
  void assign_steps(NsysProcessOps& found, const std::vector<HostRange>& ranges) const;

  const NsysRecording& recording_;
  NameMatcher& names_;
  const std::string& path_;
  std::map<std::int64_t, std::vector<CalledOps>> chunks_;  ///< [process]; empty until needed
};

/// Names a process in messages: "job.sqlite: process 1234".
std::string name_process(const std::string& path, std::int64_t process);

}  // namespace bubblescope::traces
