// Rules that say what the names of a trace mean, where they are not those of a known framework.
//
//   {"format": "bubblescope-rules/1",
//    "rules": [
//      {"match": "fwd mb(\\d+) chunk(\\d+)", "kind": "F", "microbatch": "$1", "chunk": "$2"},
//      {"match": "(send|recv)_grad.*", "kind": "ignore"},
//      {"match": "iteration (\\d+)", "kind": "step", "step": "$1"}]}
//
// "match" is a regular expression (ECMAScript, without back references) for the whole name. The
// first rule that matches decides; names that no rule matches keep their usual meaning. A number is
// given as itself or as a group: "$1", "$1-1", "$2+4".
//
// In Chrome traces a rule may ask for more than the name, and take numbers from it:
//   {"match": "comp", "thread": "(\\d) (fwd|bwd)", "category": "gpu", "kind": "$2",
//    "microbatch": "args.micro-batch"}
// Groups are counted through the name, the thread (its name, or else its tid) and the category.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "traces/measured/op_names.h"

namespace bubblescope::traces {

/// The meaning of a name: an op, a whole step, or neither.
struct NameMeaning {
  std::optional<NamedOp> op = {};
  bool is_step = false;
  std::optional<std::int64_t> step = {};  ///< the number of the step, where the name has one
  bool is_ruled = false;                  ///< a rule decided, not the usual names
};

/// The kind that one or several words mean, in any spelling: "F", "forward", "BackwardInput",
/// "bwd-weight", "ForwardPass"; nullopt for others.
std::optional<OpKind> parse_kind_word(std::string_view word);

/// The parts of a slice that rules can match.
struct RuledSlice {
  std::string_view name;
  std::string_view thread;
  std::string_view thread_id;
  std::string_view category;
  std::span<const std::string> arguments;  ///< of NameRules::arguments(); empty: it has none
};

/// A set of rules; it can be moved, not copied.
class NameRules {
 public:
  /// Without rules, names have their usual meaning.
  NameRules();
  ~NameRules();
  NameRules(NameRules&&) noexcept;
  NameRules& operator=(NameRules&&) noexcept;

  /// Parses a file of rules. Throws Error with the place of the first fault.
  static NameRules parse(std::string_view text, const std::string& file);

  /// Finds the meaning of a name by the first rule that matches it; nullopt if none does. Throws
  /// Error if the rule reads a number from a text that is none, or a number that no op has.
  std::optional<NameMeaning> find(const RuledSlice& slice) const;

  /// Finds the meaning of a name alone, by those rules that need nothing else.
  std::optional<NameMeaning> find(std::string_view name) const;

  /// The arguments that rules use.
  const std::vector<std::string>& arguments() const;

  /// Whether a rule matches this name that needs more of the slice.
  bool need_more(std::string_view name) const;

  bool empty() const { return rules_ == nullptr; }

 private:
  struct Rules;
  std::unique_ptr<const Rules> rules_;
};

/// Looks names up, first in the rules and then among the known ones. Remembers the answers, because
/// traces repeat their names. The rules are not copied; without any, names have their usual
/// meaning.
class NameMatcher {
 public:
  explicit NameMatcher(const NameRules* rules = nullptr)
      : rules_(rules != nullptr && !rules->empty() ? rules : nullptr) {}

  /// Valid until the next call.
  const NameMeaning& find(std::string_view name);

  /// The meaning by all of a slice, where need_more() says so.
  NameMeaning find(const RuledSlice& slice) const;

  /// Whether the meaning depends on more than the name.
  bool need_more(std::string_view name);

  /// The arguments that rules use.
  std::span<const std::string> arguments() const;

  /// Whether the name is an op's, or that of two overlapped ops.
  bool names_op(std::string_view name) {
    const NameMeaning& meaning = find(name);
    return meaning.op.has_value() || (!meaning.is_ruled && parse_pair_name(name).has_value());
  }

 private:
  const NameRules* rules_;  ///< null where there are none
  std::string usual_name_;  ///< of `usual_`
  NameMeaning usual_;
  std::unordered_map<std::string, NameMeaning> ruled_;
  std::unordered_map<std::string, bool> needs_more_;  ///< by name
};

}  // namespace bubblescope::traces
