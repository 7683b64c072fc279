// One rule of a file of rules, and how it is parsed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <regex>
#include <string>
#include <vector>

#include "sim/ir/op.h"
#include "traces/json/json_node.h"

namespace bubblescope::traces {

/// A number of a rule: fixed, or a group of the match or an argument, plus an offset.
struct NumberSource {
  std::size_t group = 0;  ///< 0: none
  std::int64_t value = 0;
  std::optional<std::size_t> argument = {};  ///< index into NameRules::arguments()
};

/// The purpose of a rule.
enum class Purpose : std::uint8_t { kOp, kStep, kIgnore };

/// Expressions, and where the numbers of what they match come from.
struct Rule {
  std::string text;
  std::regex pattern;
  std::optional<std::regex> thread;
  std::optional<std::regex> category;
  std::size_t groups = 0;  ///< of all expressions
  Purpose purpose = Purpose::kOp;
  std::optional<OpKind> kind;
  NumberSource kind_source;
  std::optional<NumberSource> stage, chunk, microbatch, slice, step, rank;
  bool needs_more = false;  ///< than the name
};

/// Parses rules, and collects the arguments that they use.
class RuleParser {
 public:
  /// Throws Error with the place of the first fault.
  Rule parse(const JsonNode& node);

  const std::vector<std::string>& arguments() const { return arguments_; }

 private:
  std::size_t expect_group(const JsonNode& node, std::size_t group) const;
  NumberSource parse_source(const JsonNode& node);
  NumberSource parse_argument(const JsonNode& node);
  std::optional<NumberSource> find_source(const JsonNode& node, const char* key);
  void parse_kind(const JsonNode& node);

  Rule rule_;  ///< that is being parsed
  std::vector<std::string> arguments_;
};

}  // namespace bubblescope::traces
