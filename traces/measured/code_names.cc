// Tells code from ops by the signs in names.
#include "traces/measured/code_names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

#include "sim/ir/number.h"

namespace bubblescope::traces {

namespace {

bool is_letter(char sign) { return std::isalpha(static_cast<unsigned char>(sign)) != 0; }

bool is_path(std::string_view word) {
  for (const std::string_view root : {"/", "./", "../", "~/", "<"})
    if (word.starts_with(root) && word.size() > root.size()) return true;
  const bool has_drive = word.size() > 2 && is_letter(word[0]) && word[1] == ':';
  return has_drive && (word[2] == '\\' || word[2] == '/');
}

bool is_source_file(std::string_view word) {
  constexpr std::array<std::string_view, 12> kEndings{
      ".py", ".pyc", ".pyx", ".ipynb", ".cc", ".cpp", ".cxx", ".cu", ".cuh", ".hpp", ".so", ".js"};
  return std::any_of(kEndings.begin(), kEndings.end(), [&](std::string_view ending) {
    for (std::size_t at = word.find(ending); at != word.npos; at = word.find(ending, at + 1)) {
      const std::size_t end = at + ending.size();
      const bool is_whole =
          end == word.size() || (!is_letter(word[end]) && !is_digit(word[end]) && word[end] != '_');
      if (at > 0 && is_whole) return true;
    }
    return false;
  });
}

/// Letters before the number of a dtype or of a device's architecture.
bool is_fixed_word(std::string_view letters) {
  constexpr std::array<std::string_view, 12> kWords{"bf",     "fp", "tf", "int",  "uint",   "float",
                                                    "bfloat", "sm", "cu", "cuda", "python", "py"};
  return std::find(kWords.begin(), kWords.end(), lower(letters)) != kWords.end();
}

}  // namespace

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& letter : result)
    letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return result;
}

bool names_code_location(std::string_view name) {
  constexpr std::string_view kBetween = " ()[]{},;'\"\t";
  while (!name.empty()) {
    const std::size_t end = std::min(name.find_first_of(kBetween), name.size());
    const std::string_view word = name.substr(0, end);
    if (is_path(word) || is_source_file(word)) return true;
    name.remove_prefix(std::min(name.size(), end + 1));
  }
  return false;
}

bool names_deepspeed_function(std::string_view name) {
  constexpr std::array<std::string_view, 5> kClasses{"DeepSpeed", "PartitionedParameter",
                                                     "PartitionedOptimizer", "PipelineEngine",
                                                     "PipelineModule"};
  const bool has_method = name.find('.') != name.npos;
  return has_method && std::any_of(kClasses.begin(), kClasses.end(),
                                   [&](std::string_view one) { return name.starts_with(one); });
}

std::size_t find_fixed_end(std::string_view name, std::size_t at, bool has_meaning) {
  constexpr int kPartsOfVersion = 3;
  if (at > 1 && name[at - 1] == '.' && is_digit(name[at - 2])) return at;  // it began before
  std::size_t letters = at;
  while (letters > 0 && is_letter(name[letters - 1])) --letters;
  int parts = 1;
  std::size_t end = at;
  for (; end < name.size(); ++end) {
    if (is_digit(name[end])) continue;
    if (name[end] != '.' || end + 1 == name.size() || !is_digit(name[end + 1])) break;
    ++parts;
  }
  const bool is_inside_word = letters + 1 < at && end < name.size() && is_letter(name[end]);
  if (is_inside_word && !has_meaning) return end;
  if (is_fixed_word(name.substr(letters, at - letters))) return end;
  const bool has_words = std::any_of(name.begin(), name.begin() + static_cast<std::ptrdiff_t>(at),
                                     [](char sign) { return is_letter(sign); });
  if (has_meaning || parts == 1 || !has_words) return at;
  return letters < at || parts >= kPartsOfVersion ? end : at;
}

}  // namespace bubblescope::traces
