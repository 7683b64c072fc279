// Compares names by edit distance, prefix, words and initials.
#include "sim/ir/nearest_names.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <optional>

namespace bubblescope::inline sim {

namespace {

std::size_t edit_distance(std::string_view left, std::string_view right) {
  std::vector<std::size_t> row(right.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < left.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < right.size(); ++j) {
      const std::size_t replaced = diagonal + (left[i] == right[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

using Tokens = std::vector<std::string_view>;

std::string initials_of(const Tokens& tokens) {
  std::string initials;
  for (const std::string_view token : tokens) initials += token.front();
  return initials;
}

/// Whether each wanted token is a prefix of a candidate token, in the same order: "llama 70b"
/// matches "llama3 instruct 70b".
bool begin_tokens(const Tokens& wanted, const Tokens& candidate) {
  std::size_t at = 0;
  for (const std::string_view token : candidate)
    if (at < wanted.size() && token.starts_with(wanted[at])) ++at;
  return at == wanted.size();
}

bool has_token(const Tokens& tokens, std::string_view wanted) {
  return std::find(tokens.begin(), tokens.end(), wanted) != tokens.end();
}

bool has_digit(std::string_view token) { return token.find_first_of("0123456789") != token.npos; }

/// Whether a candidate with a number has only words that were wanted, too: "nvidia h100 80gb hbm3"
/// is "h100", and no other device whose name has more letters in common.
bool is_named_within(const Tokens& wanted, const Tokens& candidate) {
  return wanted.size() > candidate.size() &&
         std::any_of(candidate.begin(), candidate.end(), has_digit) &&
         std::all_of(candidate.begin(), candidate.end(),
                     [&](std::string_view token) { return has_token(wanted, token); });
}

/// Whether names have words with digits, and the same ones: another digit makes another device.
bool share_numbers(Tokens left, Tokens right) {
  const auto has_none = [](std::string_view token) { return !has_digit(token); };
  std::erase_if(left, has_none);
  std::erase_if(right, has_none);
  return left == right && !left.empty();
}

/// Whether names differ only in what stands between words: "interleaved-1f1b" is "interleaved1f1b".
bool has_same_letters(std::string_view left, std::string_view right) {
  const auto letters_of = [](std::string_view name) {
    std::string letters(name);
    std::erase_if(letters, [](char letter) { return letter == '-' || letter == ' '; });
    return letters;
  };
  return letters_of(left) == letters_of(right);
}

/// How far a candidate is from the wanted name, both normalized and without leading dashes; empty
/// if it is too far. The same letters are nearest, and a typo beside the same numbers; then names
/// that are some of its words, other typos and names with more words behind it, other names that
/// start with it, names with the same words or initials, names that contain it, and names that
/// share half of its letters.
std::optional<std::size_t> distance_of(std::string_view wanted, std::string_view candidate) {
  constexpr std::size_t kTier = 1000;
  constexpr std::size_t kTypo = 4;  // per wrong letter
  constexpr std::size_t kWithin = 3;
  constexpr std::size_t kSharedNumbers = 2;  // less than one more wrong letter costs
  if (wanted.size() >= 2 && candidate.starts_with(wanted) && candidate.size() > wanted.size() &&
      candidate[wanted.size()] == '-')
    return kTypo;
  if (has_same_letters(wanted, candidate)) return 0;
  const Tokens words = words_in_name(wanted);
  const Tokens others = words_in_name(candidate);
  if (is_named_within(words, others)) return kWithin;
  const std::size_t edits = edit_distance(wanted, candidate);
  if (edits <= std::max<std::size_t>(1, wanted.size() / 4) && edits < wanted.size())
    return kTypo * edits - (edits > 0 && share_numbers(words, others) ? kSharedNumbers : 0);
  if (wanted.size() >= 2 && candidate.starts_with(wanted)) return kTier;
  const bool abbreviates = words.size() == 1 && initials_of(others) == wanted && wanted.size() > 1;
  const bool is_abbreviated = words.size() > 1 && has_token(others, initials_of(words));
  if (abbreviates || is_abbreviated || (wanted.size() > 2 && begin_tokens(words, others)))
    return 2 * kTier;
  if (wanted.size() > 2 && candidate.find(wanted) != candidate.npos) return 3 * kTier;
  if (edits <= std::max<std::size_t>(2, wanted.size() / 2) && 2 * edits <= wanted.size())
    return 4 * kTier + edits;
  return {};
}

std::string plain_name(std::string_view name) {
  std::string plain = normalize_name(name);
  plain.erase(0, std::min(plain.find_first_not_of('-'), plain.size()));
  return plain;
}

}  // namespace

std::vector<std::string_view> words_in_name(std::string_view name) {
  std::vector<std::string_view> words;
  for (std::size_t begin = 0; begin < name.size();) {
    const std::size_t end = std::min(name.find_first_of("- ", begin), name.size());
    if (end > begin) words.push_back(name.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

std::vector<std::string> nearest_names(std::string_view name,
                                       const std::vector<std::string>& known) {
  constexpr std::size_t kMaxNames = 4;
  const std::string wanted = plain_name(name);
  std::vector<std::string> nearest;
  std::optional<std::size_t> least;
  for (const std::string& candidate : known) {
    const std::optional<std::size_t> distance = distance_of(wanted, plain_name(candidate));
    if (!distance || (least && *distance > *least)) continue;
    if (!least || *distance < *least) nearest.clear();
    least = distance;
    const bool is_known = std::any_of(
        nearest.begin(), nearest.end(),
        [&](const std::string& other) { return plain_name(other) == plain_name(candidate); });
    if (!is_known && nearest.size() < kMaxNames) nearest.push_back(candidate);
  }
  return nearest;
}

std::string suggestion(const std::vector<std::string>& nearest) {
  std::string text;
  for (std::size_t at = 0; at < nearest.size(); ++at) {
    const char* const before = at == 0 ? "" : at + 1 == nearest.size() ? " or " : ", ";
    text += before + ("'" + nearest[at] + "'");
  }
  return text.empty() ? "" : "; did you mean " + text + "?";
}

}  // namespace bubblescope::inline sim
