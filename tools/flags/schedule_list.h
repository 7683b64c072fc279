// Lists of schedules on the command line.
#pragma once

#include <string>
#include <vector>

namespace bubblescope::tools {

/// The names and paths of a list such as "gpipe, 1f1b", each once. Empty parts are left out.
std::vector<std::string> list_schedules(const std::string& list);

/// Whether a word is "all", in any case.
bool is_all(const std::string& name);

/// Every schedule that trains, which "all" stands for.
std::vector<std::string> list_trained_schedules();

/// A list in which "all" is replaced by the schedules that it stands for.
struct ExpandedList {
  std::vector<std::string> names;  ///< each once
  std::vector<std::string> asked;  ///< those that are named, not meant by "all" alone
};

ExpandedList expand_all(const std::string& list,
                        const std::vector<std::string>& all = list_trained_schedules());

/// Leaves out paths that stand earlier in the list, and schedules that it names already, also by
/// another of their names: "1f1b,1F1B,pipedream-flush" is one schedule.
std::vector<std::string> without_repeats(std::vector<std::string> names);

/// Whether two words name the same schedule, or the same path.
bool is_same_schedule(const std::string& name, const std::string& other);

}  // namespace bubblescope::tools
