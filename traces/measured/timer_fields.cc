// Finds timers in lines.
#include "traces/measured/timer_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstddef>

#include "sim/ir/number.h"
#include "traces/files/quote.h"
#include "traces/measured/log_prefix.h"
#include "traces/schedules/cell.h"

namespace bubblescope::traces {

namespace {

/// Megatron-LM fills names up with dots to this width.
constexpr std::size_t kNameWidth = 47;

bool is_name(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 ||
         std::string_view("-_/.+").find(letter) != std::string_view::npos;
}

/// Splits the text before a colon into the name and what precedes it.
std::optional<TimerField> split_name(std::string_view before) {
  TimerField field;
  before = before.substr(0, before.find_last_not_of(" \t") + 1);
  std::string_view text = before.substr(0, before.find_last_not_of('.') + 1);
  field.has_dots = text.size() < before.size();
  text = text.substr(0, text.find_last_not_of(" \t") + 1);
  std::size_t begin = text.size();
  while (begin > 0 && is_name(text[begin - 1])) --begin;
  field.head = text.substr(0, begin);
  field.name = text.substr(begin);
  if (field.name.empty()) return {};
  return field;
}

/// "1,700.5", "nan": what a program prints as a number, whether or not it can be read.
bool looks_like_number(std::string_view value) {
  if (parse_number<double>(value)) return true;
  const bool has_digit = value.find_first_of("0123456789") != value.npos;
  return has_digit && value.find_first_not_of("0123456789.,'_+-eE") == value.npos;
}

bool is_finite(std::string_view value) {
  const auto number = parse_number<double>(value);
  return number && std::isfinite(*number);
}

bool is_known(std::string_view head) { return read_prefix(head).is_known; }

}  // namespace

std::optional<TimerField> find_range_field(std::string_view line) {
  for (std::size_t colon = line.find(':'); colon != line.npos; colon = line.find(':', colon + 1)) {
    const std::size_t open = line.find_first_not_of(" \t", colon + 1);
    if (open == line.npos || line[open] != '(') continue;
    const std::size_t close = line.find(')', open);
    if (close == line.npos) return {};
    const std::string_view value = line.substr(open, close + 1 - open);
    if (value.find(',') == value.npos) continue;
    std::optional<TimerField> field = split_name(line.substr(0, colon));
    if (!field || (!field->has_dots && field->name.size() < kNameWidth)) continue;
    field->value = value;
    return field;
  }
  return {};
}

std::optional<TimerField> find_number_field(std::string_view line) {
  const std::size_t colon = line.rfind(':');
  if (colon == line.npos) return {};
  const std::string_view value = strip(line.substr(colon + 1));
  if (!looks_like_number(value)) return {};
  std::optional<TimerField> field = split_name(line.substr(0, colon));
  if (!field) return {};
  // Other lines may end with a number, which need not be a time.
  if (!field->has_dots && (!is_known(field->head) || !is_finite(value))) return {};
  field->value = value;
  return field;
}

std::optional<TimerField> find_name_field(std::string_view line) {
  line = line.substr(0, line.find_last_not_of(" \t") + 1);
  if (!line.ends_with(':')) return {};
  const std::optional<TimerField> field = split_name(line.substr(0, line.size() - 1));
  if (!field || field->has_dots || !is_known(field->head)) return {};
  return field;
}

std::optional<TimerField> find_rank_field(std::string_view line) {
  constexpr std::string_view kRank = "rank";
  const std::size_t colon = line.rfind(':');
  if (colon == line.npos) return {};
  const std::string_view before = line.substr(0, line.find_last_not_of(" \t", colon - 1) + 1);
  const std::size_t at = before.rfind(kRank);
  if (colon == 0 || at == before.npos) return {};
  const auto rank = parse_number<std::int32_t>(strip(before.substr(at + kRank.size())));
  TimerField field{line.substr(0, at), {}, strip(line.substr(colon + 1)), rank.value_or(-1)};
  if (field.rank < 0 || !looks_like_number(field.value) || !is_known(field.head)) return {};
  return field;
}

std::optional<TimerField> find_cut_field(std::string_view line) {
  const std::size_t dots = line.find("....");
  if (dots == line.npos) return {};
  std::optional<TimerField> field = split_name(line.substr(0, dots));
  if (!field || !is_known(field->head)) return {};
  const std::size_t colon = line.find_first_not_of(" .", dots);
  if (colon == line.npos || line[colon] != ':') return field;
  const std::string_view value = strip(line.substr(colon + 1));
  field->value = value.substr(0, value.find_first_of(" \t"));
  return field;
}

std::optional<std::int64_t> find_count(std::string_view text, std::string_view word) {
  const std::size_t at = text.find(word);
  if (at == text.npos) return {};
  text.remove_prefix(at + word.size());
  text.remove_prefix(std::min(text.find_first_not_of(" =:"), text.size()));
  return parse_number<std::int64_t>(text.substr(0, text.find_first_not_of("0123456789")));
}

std::optional<std::size_t> find_iteration(std::string_view line) {
  constexpr std::string_view kIteration = "iteration";
  const std::size_t at = line.find(kIteration);
  if (at == line.npos) return {};
  std::string_view rest = line.substr(at + kIteration.size());
  rest = rest.substr(std::min(rest.find_first_not_of(" ="), rest.size()));
  const std::size_t digits = rest.find_first_not_of("0123456789");
  if (digits == 0 || digits == rest.npos || rest[digits] != '/') return {};
  return at;
}

bool is_whole_time(std::string_view value) {
  constexpr std::size_t kDecimals = 2;
  const std::size_t point = value.find('.');
  return point != value.npos && value.size() - point > kDecimals;
}

bool may_be_cut(std::string_view value) {
  return !is_whole_time(value) && value.find_first_not_of("0123456789.") == value.npos;
}

std::optional<std::int32_t> find_printing_rank(std::string_view head) {
  for (const std::string_view mark : {"[Rank ", "rank="}) {
    const std::size_t at = head.rfind(mark);
    if (at == head.npos) continue;
    const std::string_view rest = head.substr(at + mark.size());
    const auto rank =
        parse_number<std::int32_t>(rest.substr(0, rest.find_first_not_of("0123456789")));
    if (rank && *rank >= 0) return rank;
  }
  return {};
}

bool is_name_of_deepspeed(std::string_view name) {
  return name.find('_') != name.npos || name == "fwd" || name == "bwd" || name == "step";
}

bool is_name_of_pipeline(std::string_view name) {
  return name.starts_with("pipe_") || name == "batch_input";
}

std::optional<double> parse_time(std::string_view text) {
  constexpr double kMaxNumber = 1e11;  // three years
  const auto number = parse_number<double>(strip(text));
  if (!number || !(*number >= 0) || *number > kMaxNumber) return {};
  return std::abs(*number);  // "-0" is a zero
}

std::string describe_no_time(std::string_view text, std::string_view unit) {
  return fmt::format("{} is not a time in {}", quote(strip(text)), unit);
}

std::string_view first_word(std::string_view text) {
  text = strip(text);
  return text.substr(0, text.find_first_of(" |\t"));
}

}  // namespace bubblescope::traces
