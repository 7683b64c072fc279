// The command table: help, dispatch and completion all read it.
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string_view>

#include "tools/command.h"
#include "tools/flags/field_names.h"
#include "tools/print.h"

namespace bubblescope::tools {

namespace {

bool is_plain(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 ||
         std::string_view("-_./,:=+@%").find(letter) != std::string_view::npos;
}

/// Quotes a word with single quotes, writing a single quote in it as '\\''.
std::string shell_word(const std::string& word) {
  if (!word.empty() && std::all_of(word.begin(), word.end(), is_plain)) return word;
  std::string quoted = "'";
  for (const char letter : word) quoted += letter == '\'' ? "'\\''" : std::string(1, letter);
  return quoted + "'";
}

}  // namespace

const std::vector<Command>& commands() {
  static const std::vector<Command> table{
      {"simulate", "time one schedule: drawing, bubbles, memory, critical path", run_simulate},
      {"compare", "several schedules side by side", run_compare},
      {"search", "find a schedule for given costs and memory, with a lower bound", run_search},
      {"partition", "split a model's layers into stages and replicas", run_partition},
      {"plan", "sweep schedules and shapes: ranked, with break-even points", run_plan},
      {"run", "execute a schedule: its timeline, its bubbles, its gradients", run_run},
      {"calibrate", "measure what ops and messages cost here, as a --costs file", run_calibrate},
      {"analyze", "report on a measured trace: bubbles, stragglers, what-ifs", run_analyze},
      {"check", "is a schedule legal, can it deadlock, what memory does it need", run_check},
      {"convert", "write a schedule in another format", run_convert},
      {"diff", "two reports or timelines, op by op; a gate for CI", run_diff},
      {"list", "the schedules, models, GPUs, formats and other names that flags accept", run_list},
      {"completion", "print a completion script for bash, zsh or fish", run_completion},
  };
  return table;
}

std::string format_command_line(const std::string& command, const Arguments& arguments) {
  std::string line = "bubblescope " + command;
  for (const std::string& word : arguments) line += " " + shell_word(word);
  return line;
}

namespace {

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

std::string format_own_command_line(const std::string& command, const Arguments& arguments) {
  const std::vector<std::string> words = read_own_words();
  if (!runs(words, command, arguments)) return format_command_line(command, arguments);
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + shell_word(word);
  return line;
}

int exit_status(Fault fault) {
  switch (fault) {
    case Fault::kProblem: return 1;
    case Fault::kUsage: return 2;
    case Fault::kMachine:
    case Fault::kMemory: return 3;
  }
  return 3;
}

void print_error(const std::string& message) {
  print_message("bubblescope: {}\n", name_flags(message));
}

}  // namespace bubblescope::tools
