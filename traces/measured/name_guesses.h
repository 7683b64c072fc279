// Guesses what the names of unknown traces mean, by their words and numbers: "my_bwd_weight mb3" is
// the weight gradient of micro-batch 3.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bubblescope::traces {

/// Stands in a rule for the group that the user has to name.
inline constexpr const char* kOpenGroup = "$?";

/// A name as a regular expression with a group for every number, and what the numbers mean.
struct NamePattern {
  static constexpr int kOpen = 0;  ///< several groups may be it, so the user has to say which is

  std::string text;
  std::vector<std::pair<std::string, int>> numbers;  ///< key and group, or kOpen
};

/// Generalizes a name. A number without a meaning is the micro-batch, if no other is: the one
/// behind the word for the kind, or the only one. Versions and the like remain as they are.
NamePattern make_pattern(std::string_view name);

/// The kind that a name in small letters says, "F", "B", "I", "W" or "R"; nullptr where it says
/// none.
const char* guess_kind(const std::string& name);

/// Whether a name is that of communication, which is not a compute op: NCCL's and Gloo's calls, and
/// what says that it sends, receives or is a collective.
bool is_communication(const std::string& name);

/// Whether it is the name of a function, of any op.
bool names_function(std::string_view name);

/// Whether one op may have this name: a range around forwards and backwards has both words,
/// wrappers of modules name their own parts, functions have their files, and messages and the
/// optimizer's update are no ops.
bool may_be_op(const std::string& name);

/// Whether a name counts steps and nothing else, as "ProfilerStep#2": it is not an op.
bool is_step_marker(const std::string& name);

/// Returns a rule for names like this one, as json: its kind by its words, and its numbers by the
/// words before them.
std::string suggest_rule(std::string_view name);

}  // namespace bubblescope::traces
