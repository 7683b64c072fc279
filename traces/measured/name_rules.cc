// Compiles and applies rules with the standard library's regular expressions.
#include "traces/measured/name_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <regex>
#include <utility>
#include <vector>

#include "sim/ir/error.h"
#include "sim/ir/number.h"
#include "sim/ir/shape.h"
#include "traces/files/quote.h"
#include "traces/json/json_node.h"
#include "traces/schedules/cell.h"

namespace bubblescope::traces {

namespace {

constexpr std::size_t kMaxRules = 1'000;
constexpr std::size_t kMaxPattern = 500;
constexpr std::size_t kMaxName = 500;  ///< longer names are not ops

#ifdef __GLIBCXX__
/// Otherwise a pattern can take time that is exponential in the length of a name.
constexpr auto kSyntax = std::regex::ECMAScript | std::regex_constants::__polynomial;
#else
constexpr auto kSyntax = std::regex::ECMAScript;
#endif

struct KindWord {
  std::string_view word;
  OpKind kind;
};

constexpr std::array<KindWord, 22> kKinds{{
    {"F", OpKind::kForward},           {"forward", OpKind::kForward},
    {"fwd", OpKind::kForward},         {"B", OpKind::kBackward},
    {"backward", OpKind::kBackward},   {"bwd", OpKind::kBackward},
    {"I", OpKind::kInputGrad},         {"dgrad", OpKind::kInputGrad},
    {"W", OpKind::kWeightGrad},        {"wgrad", OpKind::kWeightGrad},
    {"R", OpKind::kRecompute},         {"recompute", OpKind::kRecompute},
    {"SEND_F", OpKind::kSendForward},  {"RECV_F", OpKind::kRecvForward},
    {"SEND_B", OpKind::kSendBackward}, {"RECV_B", OpKind::kRecvBackward},
    {"f", OpKind::kForward},           {"b", OpKind::kBackward},
    {"i", OpKind::kInputGrad},         {"w", OpKind::kWeightGrad},
    {"Forward", OpKind::kForward},     {"Backward", OpKind::kBackward},
}};

/// A number of a rule: fixed, or a group of the match plus an offset.
struct NumberSource {
  std::size_t group = 0;  ///< 0: fixed
  std::int64_t value = 0;
};

enum class Purpose : std::uint8_t { kOp, kStep, kIgnore };

struct Rule {
  std::string text;
  std::regex pattern;
  Purpose purpose = Purpose::kOp;
  std::optional<OpKind> kind;
  std::size_t kind_group = 0;
  std::optional<NumberSource> stage, chunk, microbatch, slice, step, rank;
};

using Match = std::match_results<std::string_view::const_iterator>;

/// Parses "$2", and leaves in `rest` what follows the number.
std::optional<std::size_t> take_group(std::string_view text, std::string_view& rest) {
  if (!text.starts_with('$')) return {};
  const std::size_t end = std::min(text.find_first_not_of("0123456789", 1), text.size());
  rest = text.substr(end);
  return parse_number<std::size_t>(text.substr(1, end - 1));
}

std::size_t expect_group(const JsonNode& node, std::size_t group, const std::regex& pattern) {
  if (group == 0 || group > pattern.mark_count())
    node.refuse(fmt::format("names group {} of its \"match\", which has {} group(s) in brackets",
                            group, pattern.mark_count()));
  return group;
}

NumberSource parse_source(const JsonNode& node, const std::regex& pattern) {
  constexpr std::int64_t kMaxNumber = std::int64_t{1} << 40;
  if (node.is_integer()) return {0, node.integer(0, kMaxNumber)};
  std::string_view rest;
  const auto group = take_group(node.text(), rest);
  if (!group) node.refuse("must be a number, or a group such as \"$1\" or \"$1-1\"");
  NumberSource source{expect_group(node, *group, pattern), 0};
  if (rest.empty()) return source;
  const auto offset = parse_number<std::int64_t>(rest.substr(rest.starts_with('+') ? 1 : 0));
  const bool is_signed = rest.starts_with('+') || rest.starts_with('-');
  if (!is_signed || !offset || *offset < -kMaxNumber || *offset > kMaxNumber)
    node.refuse("must be a number, or a group such as \"$1\" or \"$1-1\"");
  source.value = *offset;
  return source;
}

std::optional<NumberSource> find_source(const JsonNode& rule, const char* key,
                                        const std::regex& pattern) {
  const auto node = rule.find(key);
  if (!node) return {};
  return parse_source(*node, pattern);
}

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

void parse_kind(const JsonNode& node, Rule& rule) {
  const std::string& text = node.text();
  std::string_view rest;
  if (text == "step") {
    rule.purpose = Purpose::kStep;
  } else if (text == "ignore") {
    rule.purpose = Purpose::kIgnore;
  } else if (const auto group = take_group(text, rest); group && rest.empty()) {
    rule.kind_group = expect_group(node, *group, rule.pattern);
  } else if (rule.kind = parse_kind_word(text); !rule.kind) {
    node.refuse(
        "must be F, B, I, W, R, SEND_F, RECV_F, SEND_B, RECV_B, step, ignore, or a group "
        "such as \"$1\" that matches one of them");
  }
}

Rule parse_rule(const JsonNode& node) {
  node.expect_keys({"match", "kind", "stage", "chunk", "microbatch", "slice", "step", "rank"});
  const JsonNode match = node.at("match");
  Rule rule{match.text(), compile(match), Purpose::kOp, {}, 0, {}, {}, {}, {}, {}, {}};
  const JsonNode kind = node.at("kind");
  parse_kind(kind, rule);
  rule.stage = find_source(node, "stage", rule.pattern);
  rule.chunk = find_source(node, "chunk", rule.pattern);
  rule.microbatch = find_source(node, "microbatch", rule.pattern);
  rule.slice = find_source(node, "slice", rule.pattern);
  rule.step = find_source(node, "step", rule.pattern);
  rule.rank = find_source(node, "rank", rule.pattern);
  if (rule.stage && rule.chunk) node.refuse("has a stage and a chunk; give one of them");
  return rule;
}

std::string_view text_of(const Match& match, std::size_t group) {
  return {match[group].first, match[group].second};
}

/// The number that a source gives for a name.
template <class Number>
Number number_of(const Rule& rule, const char* key, const NumberSource& source, const Match& match,
                 std::int64_t max_value) {
  std::int64_t number = source.value;
  if (source.group > 0) {
    const std::string_view text = text_of(match, source.group);
    const auto found = parse_number<std::int64_t>(text);
    const bool fits = found && *found >= 0 && *found <= max_value + std::abs(source.value);
    if (!fits)
      throw Error(
          fmt::format("`rules`: the rule for {} takes \"{}\" from {}, which is not a number "
                      "from 0 to {}; correct the rule",
                      quote(rule.text), key, quote(std::string(text)), max_value));
    number += *found;
  }
  if (number < 0 || number > max_value)
    throw Error(
        fmt::format("`rules`: the rule for {} makes \"{}\" {}, but it must be 0 to {}; "
                    "correct the rule",
                    quote(rule.text), key, number, max_value));
  return static_cast<Number>(number);
}

OpKind kind_in(const Rule& rule, const Match& match) {
  if (rule.kind) return *rule.kind;
  const std::string_view text = text_of(match, rule.kind_group);
  const auto kind = parse_kind_word(text);
  if (!kind)
    throw Error(
        fmt::format("`rules`: the rule for {} takes its kind from {}, which is not one of F, "
                    "B, I, W, R, forward, backward; correct the rule",
                    quote(rule.text), quote(std::string(text))));
  return *kind;
}

NamedOp op_by(const Rule& rule, const Match& match) {
  NamedOp named;
  named.op.kind = kind_in(rule, match);
  named.has_stage = rule.stage.has_value();
  named.has_microbatch = rule.microbatch.has_value();
  if (rule.stage)
    named.op.stage = number_of<std::int32_t>(rule, "stage", *rule.stage, match, kMaxStage);
  if (rule.microbatch)
    named.op.microbatch =
        number_of<std::int32_t>(rule, "microbatch", *rule.microbatch, match, kMaxMicrobatch);
  if (rule.slice)
    named.op.slice = number_of<std::int16_t>(rule, "slice", *rule.slice, match, kMaxSlice);
  if (rule.chunk) named.chunk = number_of<std::int32_t>(rule, "chunk", *rule.chunk, match, 1023);
  if (rule.rank)
    named.rank = number_of<std::int32_t>(rule, "rank", *rule.rank, match, kMaxRanks - 1);
  return named;
}

}  // namespace

std::optional<OpKind> parse_kind_word(std::string_view word) {
  for (const KindWord& known : kKinds)
    if (known.word == word) return known.kind;
  return {};
}

struct NameRules::Rules {
  std::vector<Rule> all;
};

NameRules::NameRules() = default;
NameRules::~NameRules() = default;
NameRules::NameRules(NameRules&&) noexcept = default;
NameRules& NameRules::operator=(NameRules&&) noexcept = default;

NameRules NameRules::parse(std::string_view text, const std::string& file) {
  const JsonFile json(text, file);
  const JsonNode root = json.root();
  root.expect_keys({"format", "rules"});
  root.expect_format("bubblescope-rules/1");
  const JsonNode list = root.at("rules");
  if (list.size() == 0 || list.size() > kMaxRules)
    list.refuse(fmt::format("must have 1 to {} rules", kMaxRules));
  auto rules = std::make_unique<Rules>();
  for (std::size_t at = 0; at < list.size(); ++at) rules->all.push_back(parse_rule(list[at]));
  NameRules made;
  made.rules_ = std::move(rules);
  return made;
}

std::optional<NameMeaning> NameRules::find(std::string_view name) const {
  if (empty() || name.size() > kMaxName) return {};
  for (const Rule& rule : rules_->all) {
    Match match;
    if (!std::regex_match(name.begin(), name.end(), match, rule.pattern)) continue;
    NameMeaning meaning;
    meaning.is_ruled = true;
    constexpr std::int64_t kMaxStep = std::int64_t{1} << 40;
    if (rule.step)
      meaning.step = number_of<std::int64_t>(rule, "step", *rule.step, match, kMaxStep);
    meaning.is_step = rule.purpose == Purpose::kStep;
    if (rule.purpose == Purpose::kOp) {
      meaning.op = op_by(rule, match);
      meaning.op->step = meaning.step;
    }
    return meaning;
  }
  return {};
}

const NameMeaning& NameMatcher::find(std::string_view name) {
  if (rules_ != nullptr) {
    const auto known = ruled_.find(std::string(name));
    if (known != ruled_.end()) return known->second;
    std::optional<NameMeaning> meaning = rules_->find(name);
    if (!meaning) meaning = NameMeaning{parse_op_name(name)};
    return ruled_.emplace(name, *meaning).first->second;
  }
  // Callers ask about one name several times in a row.
  if (name != usual_name_ || name.empty()) {
    usual_ = {parse_op_name(name)};
    usual_name_ = name;
  }
  return usual_;
}

}  // namespace bubblescope::traces
