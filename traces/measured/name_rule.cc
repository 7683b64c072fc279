// Parses rules with the standard library's regular expressions.
#include "traces/measured/name_rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "sim/ir/number.h"
#include "traces/measured/name_rules.h"

namespace bubblescope::traces {

namespace {

constexpr std::size_t kMaxPattern = 500;

#ifdef __GLIBCXX__
/// Otherwise a pattern can take time that is exponential in the length of a name.
constexpr auto kSyntax = std::regex::ECMAScript | std::regex_constants::__polynomial;
#else
constexpr auto kSyntax = std::regex::ECMAScript;
#endif

/// Parses "$2", and leaves in `rest` what follows the number.
std::optional<std::size_t> take_group(std::string_view text, std::string_view& rest) {
  if (!text.starts_with('$')) return {};
  const std::size_t end = std::min(text.find_first_not_of("0123456789", 1), text.size());
  rest = text.substr(end);
  return parse_number<std::size_t>(text.substr(1, end - 1));
}

constexpr std::string_view kArgument = "args.";

std::regex compile(const JsonNode& node) {
  const std::string& text = node.text();
  if (text.empty() || text.size() > kMaxPattern)
    node.refuse(fmt::format("must have 1 to {} letters", kMaxPattern));
  if (text.find('{') != text.npos) node.refuse("has a count in braces; write the repetition out");
  try {
    return std::regex(text, kSyntax);
  } catch (const std::regex_error& error) {
    node.refuse(fmt::format("is not a valid regular expression: {}", error.what()));
  }
}

/// Parses "+4" or "-1"; nullopt where it is neither.
std::optional<std::int64_t> parse_offset(std::string_view text) {
  constexpr std::int64_t kMaxOffset = std::int64_t{1} << 40;
  if (!text.starts_with('+') && !text.starts_with('-')) return {};
  const auto offset = parse_number<std::int64_t>(text.substr(text.starts_with('+') ? 1 : 0));
  if (!offset || *offset < -kMaxOffset || *offset > kMaxOffset) return {};
  return offset;
}

}  // namespace

std::size_t RuleParser::expect_group(const JsonNode& node, std::size_t group) const {
  if (group == 0 || group > rule_.groups)
    node.refuse(fmt::format("names group {}, but the expressions of its rule have {} in brackets",
                            group, rule_.groups));
  return group;
}

/// Parses a source such as "args.micro-batch" or "args.mb-1".
NumberSource RuleParser::parse_argument(const JsonNode& node) {
  std::string_view name = std::string_view(node.text()).substr(kArgument.size());
  NumberSource source;
  if (const std::size_t sign = name.find_last_of("+-"); sign != name.npos && sign > 0)
    if (const std::optional<std::int64_t> offset = parse_offset(name.substr(sign))) {
      source.value = *offset;
      name = name.substr(0, sign);
    }
  if (name.empty()) node.refuse("must name an argument, such as \"args.step\"");
  const auto known = std::find(arguments_.begin(), arguments_.end(), name);
  source.argument = static_cast<std::size_t>(known - arguments_.begin());
  if (known == arguments_.end()) arguments_.emplace_back(name);
  rule_.needs_more = true;
  return source;
}

NumberSource RuleParser::parse_source(const JsonNode& node) {
  constexpr const char* kNeeded =
      "must be a number, a group such as \"$1\" or \"$1-1\", or an argument such as \"args.step\"";
  constexpr std::int64_t kMaxNumber = std::int64_t{1} << 40;
  if (node.is_integer()) return {0, node.integer(0, kMaxNumber)};
  if (node.text().starts_with(kArgument)) return parse_argument(node);
  std::string_view rest;
  const auto group = take_group(node.text(), rest);
  if (!group) node.refuse(kNeeded);
  NumberSource source{expect_group(node, *group), 0};
  if (rest.empty()) return source;
  const std::optional<std::int64_t> offset = parse_offset(rest);
  if (!offset) node.refuse(kNeeded);
  source.value = *offset;
  return source;
}

std::optional<NumberSource> RuleParser::find_source(const JsonNode& node, const char* key) {
  const auto found = node.find(key);
  if (!found) return {};
  return parse_source(*found);
}

void RuleParser::parse_kind(const JsonNode& node) {
  const std::string& text = node.text();
  std::string_view rest;
  if (text == "step") {
    rule_.purpose = Purpose::kStep;
  } else if (text == "ignore") {
    rule_.purpose = Purpose::kIgnore;
  } else if (text.starts_with(kArgument)) {
    rule_.kind_source = parse_argument(node);
  } else if (const auto group = take_group(text, rest); group && rest.empty()) {
    rule_.kind_source.group = expect_group(node, *group);
  } else if (rule_.kind = parse_kind_word(text); !rule_.kind) {
    node.refuse(
        "must be F, B, I, W, R, SEND_F, RECV_F, SEND_B, RECV_B, step, ignore, a group such "
        "as \"$1\" that matches one of them, or an argument such as \"args.kind\"");
  }
}

Rule RuleParser::parse(const JsonNode& node) {
  node.expect_keys({"match", "thread", "category", "kind", "stage", "chunk", "microbatch", "slice",
                    "step", "rank"});
  const JsonNode match = node.at("match");
  rule_ = {};
  rule_.text = match.text();
  rule_.pattern = compile(match);
  if (const auto thread = node.find("thread")) rule_.thread = compile(*thread);
  if (const auto category = node.find("category")) rule_.category = compile(*category);
  rule_.groups = rule_.pattern.mark_count() + (rule_.thread ? rule_.thread->mark_count() : 0) +
                 (rule_.category ? rule_.category->mark_count() : 0);
  rule_.needs_more = rule_.thread || rule_.category;
  parse_kind(node.at("kind"));
  rule_.stage = find_source(node, "stage");
  rule_.chunk = find_source(node, "chunk");
  rule_.microbatch = find_source(node, "microbatch");
  rule_.slice = find_source(node, "slice");
  rule_.step = find_source(node, "step");
  rule_.rank = find_source(node, "rank");
  if (rule_.stage && rule_.chunk) node.refuse("has a stage and a chunk; give one of them");
  return rule_;
}

}  // namespace bubblescope::traces
