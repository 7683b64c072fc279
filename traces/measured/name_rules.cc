// Matches slices with rules.
#include "traces/measured/name_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <regex>
#include <utility>
#include <vector>

#include "sim/ir/error.h"
#include "sim/ir/number.h"
#include "sim/ir/shape.h"
#include "traces/files/quote.h"
#include "traces/json/json_node.h"
#include "traces/measured/name_rule.h"
#include "traces/measured/name_words.h"
#include "traces/schedules/cell.h"

namespace bubblescope::traces {

namespace {

constexpr std::size_t kMaxRules = 1'000;
constexpr std::size_t kMaxName = 500;  ///< longer names are not ops

struct KindWord {
  std::string_view word;
  OpKind kind;
};

/// Letters and what is written as codes, exactly so: a "r" may as well be a request.
constexpr std::array<KindWord, 11> kCodes{{
    {"F", OpKind::kForward},
    {"B", OpKind::kBackward},
    {"I", OpKind::kInputGrad},
    {"W", OpKind::kWeightGrad},
    {"R", OpKind::kRecompute},
    {"SEND_F", OpKind::kSendForward},
    {"RECV_F", OpKind::kRecvForward},
    {"SEND_B", OpKind::kSendBackward},
    {"RECV_B", OpKind::kRecvBackward},
    {"f", OpKind::kForward},
    {"b", OpKind::kBackward},
}};

/// Words for ops that are one or a whole backward, in any spelling.
constexpr std::array<KindWord, 5> kWholeOps{{
    {"forward", OpKind::kForward},
    {"fwd", OpKind::kForward},
    {"backward", OpKind::kBackward},
    {"bwd", OpKind::kBackward},
    {"recompute", OpKind::kRecompute},
}};

/// Words for the two parts of a backward. They come in pairs: a trace of which one part were known
/// and the other were not would lack half of its ops.
struct BackwardParts {
  std::string_view input;
  std::string_view weight;
  bool may_stand_alone = true;  ///< else only behind a word for a backward: "bwd_input"
};

constexpr std::array<BackwardParts, 6> kBackwardParts{{
    {"inputgrad", "weightgrad"},
    {"gradinput", "gradweight"},
    {"dgrad", "wgrad"},
    {"dx", "dw"},
    {"i", "w"},
    {"input", "weight", false},
}};

/// Words behind that of an op, which add nothing: "ForwardPass", "backward_step".
constexpr std::array<std::string_view, 3> kCalls{"pass", "step", "compute"};

/// Takes the words of an op without those behind them: "dgrad", "BwdInput", "full_backward".
std::optional<OpKind> take_kind(NameWords& words) {
  const bool is_full = words.take("full");
  std::optional<OpKind> whole;
  for (const KindWord& known : kWholeOps)
    if (!whole && words.take(known.word)) whole = known.kind;
  const bool is_behind_backward = whole == OpKind::kBackward;
  if (is_full) return is_behind_backward ? whole : std::nullopt;
  if (whole && !is_behind_backward) return whole;
  // Beside "backward_w", this is the part that the next rank waits for; alone, it is all.
  if (is_behind_backward && words.take("b")) return OpKind::kBackward;
  for (const BackwardParts& parts : kBackwardParts) {
    if (!is_behind_backward && !parts.may_stand_alone) continue;
    if (words.take(parts.input)) return OpKind::kInputGrad;
    if (words.take(parts.weight)) return OpKind::kWeightGrad;
  }
  return whole;
}

/// The groups of all expressions of a rule, the first at 1, and the arguments of the slice.
struct Match {
  std::vector<std::string_view> groups = std::vector<std::string_view>(1);
  std::span<const std::string> arguments;
};

/// Adds the groups of an expression; false where it does not match the whole text.
bool add_groups(std::string_view text, const std::regex& pattern, Match& match) {
  std::match_results<std::string_view::const_iterator> found;
  if (!std::regex_match(text.begin(), text.end(), found, pattern)) return false;
  for (std::size_t group = 1; group < found.size(); ++group)
    match.groups.emplace_back(found[group].first, found[group].second);
  return true;
}

std::string_view text_of(const Match& match, const NumberSource& source) {
  if (!source.argument) return match.groups[source.group];
  return *source.argument < match.arguments.size() ? match.arguments[*source.argument]
                                                   : std::string_view();
}

/// Finds the groups of a rule; nullopt where it does not match.
std::optional<Match> match_rule(const Rule& rule, const RuledSlice& slice) {
  Match match;
  match.arguments = slice.arguments;
  if (!add_groups(slice.name, rule.pattern, match)) return {};
  if (rule.thread && !add_groups(slice.thread, *rule.thread, match) &&
      !add_groups(slice.thread_id, *rule.thread, match))
    return {};
  if (rule.category && !add_groups(slice.category, *rule.category, match)) return {};
  return match;
}

/// The number that a source gives for a name.
template <class Number>
Number number_of(const Rule& rule, const char* key, const NumberSource& source, const Match& match,
                 std::int64_t max_value) {
  std::int64_t number = source.value;
  if (source.group > 0 || source.argument) {
    const std::string_view text = text_of(match, source);
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
  const std::string_view text = text_of(match, rule.kind_source);
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

NameMeaning meaning_by(const Rule& rule, const Match& match) {
  constexpr std::int64_t kMaxStep = std::int64_t{1} << 40;
  NameMeaning meaning;
  meaning.is_ruled = true;
  if (rule.step) meaning.step = number_of<std::int64_t>(rule, "step", *rule.step, match, kMaxStep);
  meaning.is_step = rule.purpose == Purpose::kStep;
  if (rule.purpose == Purpose::kOp) {
    meaning.op = op_by(rule, match);
    meaning.op->step = meaning.step;
  }
  return meaning;
}

}  // namespace

std::optional<OpKind> parse_kind_word(std::string_view word) {
  constexpr std::size_t kMaxLength = 40;
  for (const KindWord& known : kCodes)
    if (known.word == word) return known.kind;
  if (word.size() > kMaxLength) return {};
  NameWords words(word);
  if (!words.are_all()) return {};
  const std::optional<OpKind> kind = take_kind(words);
  for (const std::string_view call : kCalls)
    if (words.take(call)) break;
  return words.empty() ? kind : std::nullopt;
}

struct NameRules::Rules {
  std::vector<Rule> all;
  std::vector<std::string> arguments;
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
  RuleParser parser;
  for (std::size_t at = 0; at < list.size(); ++at) rules->all.push_back(parser.parse(list[at]));
  rules->arguments = parser.arguments();
  NameRules made;
  made.rules_ = std::move(rules);
  return made;
}

std::optional<NameMeaning> NameRules::find(const RuledSlice& slice) const {
  if (empty() || slice.name.size() > kMaxName) return {};
  for (const Rule& rule : rules_->all)
    if (const std::optional<Match> match = match_rule(rule, slice)) return meaning_by(rule, *match);
  return {};
}

std::optional<NameMeaning> NameRules::find(std::string_view name) const {
  if (empty() || name.size() > kMaxName) return {};
  for (const Rule& rule : rules_->all)
    if (!rule.needs_more)
      if (const std::optional<Match> match = match_rule(rule, {name, {}, {}, {}, {}}))
        return meaning_by(rule, *match);
  return {};
}

const std::vector<std::string>& NameRules::arguments() const {
  static const std::vector<std::string> none;
  return empty() ? none : rules_->arguments;
}

bool NameRules::need_more(std::string_view name) const {
  if (empty() || name.size() > kMaxName) return false;
  return std::any_of(rules_->all.begin(), rules_->all.end(), [name](const Rule& rule) {
    return rule.needs_more && std::regex_match(name.begin(), name.end(), rule.pattern);
  });
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

NameMeaning NameMatcher::find(const RuledSlice& slice) const {
  if (rules_ != nullptr)
    if (const std::optional<NameMeaning> meaning = rules_->find(slice)) return *meaning;
  return {parse_op_name(slice.name)};
}

bool NameMatcher::need_more(std::string_view name) {
  if (rules_ == nullptr) return false;
  const auto [found, is_new] = needs_more_.try_emplace(std::string(name));
  if (is_new) found->second = rules_->need_more(name);
  return found->second;
}

std::span<const std::string> NameMatcher::arguments() const {
  return rules_ == nullptr ? std::span<const std::string>() : rules_->arguments();
}

}  // namespace bubblescope::traces
