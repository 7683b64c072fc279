// Finds where the words of names begin.
#include "traces/measured/name_words.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace bubblescope::traces {

namespace {

bool is_letter(char sign) { return std::isalpha(static_cast<unsigned char>(sign)) != 0; }
bool is_upper(char sign) { return std::isupper(static_cast<unsigned char>(sign)) != 0; }
bool is_separator(char sign) { return sign == '_' || sign == '-' || sign == ' '; }

bool begins_word(std::string_view name, std::size_t at) {
  if (at == 0 || !is_letter(name[at - 1])) return true;
  if (!is_upper(name[at])) return false;
  return !is_upper(name[at - 1]) ||
         (at + 1 < name.size() && is_letter(name[at + 1]) && !is_upper(name[at + 1]));
}

bool consists_of_words(std::string_view name) {
  if (name.empty() || !is_letter(name.front()) || !is_letter(name.back())) return false;
  for (std::size_t at = 1; at < name.size(); ++at)
    if (!is_letter(name[at]) && !(is_separator(name[at]) && is_letter(name[at - 1]))) return false;
  return true;
}

}  // namespace

NameWords::NameWords(std::string_view name) : are_all_(consists_of_words(name)) {
  for (std::size_t at = 0; at < name.size(); ++at) {
    if (!is_letter(name[at])) continue;
    begins_.push_back(begins_word(name, at));
    letters_ += static_cast<char>(std::tolower(static_cast<unsigned char>(name[at])));
  }
  begins_.push_back(true);  // behind the last word
}

bool NameWords::have(std::string_view wanted) const {
  for (std::size_t at = letters_.find(wanted); at != letters_.npos;
       at = letters_.find(wanted, at + 1))
    if (begins_[at] && is_ending(at + wanted.size())) return true;
  return false;
}

bool NameWords::take(std::string_view wanted) {
  const std::string_view rest = std::string_view(letters_).substr(front_);
  if (!rest.starts_with(wanted) || !begins_[front_ + wanted.size()]) return false;
  front_ += wanted.size();
  return true;
}

/// Whether a word ends here, or with an ending: "waits", "optimizers", "loading".
bool NameWords::is_ending(std::size_t at) const {
  constexpr std::array<std::string_view, 8> kEndings{"", "s", "es", "r", "rs", "er", "ers", "ing"};
  const auto next =
      std::find(begins_.begin() + static_cast<std::ptrdiff_t>(at), begins_.end(), true);
  const auto count = static_cast<std::size_t>(next - begins_.begin()) - at;
  const std::string_view rest = std::string_view(letters_).substr(at, count);
  return std::find(kEndings.begin(), kEndings.end(), rest) != kEndings.end();
}

}  // namespace bubblescope::traces
