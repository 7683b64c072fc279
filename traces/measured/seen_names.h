// The names in a trace that names no op: what a refusal lists, and the rule that would fit.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace bubblescope::traces {

/// Puts rules, with commas between them, into the text of a whole file of rules.
std::string as_rules_file(const std::string& rules);

/// Counts names that differ only in their numbers together: "fwd 3" and "fwd 12" are both "fwd #".
class SeenNames {
 public:
  void add(std::string_view name);

  bool empty() const { return groups_.empty(); }

  /// Lists the most frequent names and gives a rule that would fit, or says that none does; empty
  /// where no name was seen:
  ///   ; its names: 'fwd mb 3' (64 like it), 'bwd mb 3' (64 like it); a file for `rules` can
  ///   say what they mean: {"format":"bubblescope-rules/1","rules":[{"match":"fwd mb (\\d+)",...}]}
  std::string describe() const;

  /// The most frequent names: "; its names: 'fwd mb 3' (64 like it), ..."; empty without any.
  std::string list() const;

  /// A rule for every kind of op that names speak of; empty where none does.
  std::string suggest_op_rules() const;

  /// A rule for names that count steps ("iteration 3"), of which each may be a step's range; empty
  /// where none does, or several do.
  std::string suggest_step_rule() const;

 private:
  struct Group {
    std::string example;
    std::size_t count = 0;
  };
  /// Says why the names that DeepSpeed gives to its functions are not enough; empty without any.
  std::string describe_deepspeed() const;
  /// Whether a profiler of code wrote names: those without a number are then functions as well.
  bool has_code_locations() const;
  /// The most frequent ones first.
  std::vector<const Group*> sort_groups() const;

  std::map<std::string, Group, std::less<>> groups_;  ///< by name with '#' for every number
};

}  // namespace bubblescope::traces
