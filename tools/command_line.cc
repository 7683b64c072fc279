// Quotes words for a shell, and reads the words of this process.
#include "tools/command_line.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <iterator>
#include <string_view>
#include <vector>

namespace bubblescope::tools {

namespace {

bool is_plain(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 ||
         std::string_view("-_./,:=+@%").find(letter) != std::string_view::npos;
}

/// Quotes a word with single quotes. A single quote in it becomes '\\''.
std::string shell_word(const std::string& word) {
  if (!word.empty() && std::all_of(word.begin(), word.end(), is_plain)) return word;
  std::string quoted = "'";
  for (const char letter : word) quoted += letter == '\'' ? "'\\''" : std::string(1, letter);
  return quoted + "'";
}

/// The words of this process; empty where the system does not tell.
std::vector<std::string> read_own_words() {
  std::vector<std::string> words;
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  return words;
}

/// Whether the words run the command with these arguments, and maybe with more.
bool runs(const std::vector<std::string>& words, const std::string& command,
          const Arguments& arguments) {
  auto at = std::find(words.begin(), words.end(), command);
  if (at == words.begin() || at == words.end()) return false;
  for (const std::string& argument : arguments) {
    at = std::find(std::next(at), words.end(), argument);
    if (at == words.end()) return false;
  }
  return true;
}

}  // namespace

std::string format_command_line(const std::string& command, const Arguments& arguments) {
  std::string line = "bubblescope " + command;
  for (const std::string& word : arguments) line += " " + shell_word(word);
  return line;
}

std::string format_own_command_line(const std::string& command, const Arguments& arguments) {
  const std::vector<std::string> words = read_own_words();
  if (!runs(words, command, arguments)) return format_command_line(command, arguments);
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + shell_word(word);
  return line;
}

}  // namespace bubblescope::tools
