// The program: finds the command in the table and turns errors into exit statuses.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <exception>
#include <string>
#include <system_error>

#include "exec/runtime/keep_memory.h"
#include "sim/ir/error.h"
#include "sim/ir/nearest_names.h"
#include "tools/command.h"
#include "tools/errors.h"
#include "tools/flags/take_input_limit.h"
#include "tools/print.h"

namespace bubblescope::tools {

namespace {

void print_help() {
  print_output(
      "bubblescope {} - what a pipeline schedule costs, where its bubbles come from,\n"
      "and whether it can deadlock\n\n"
      "usage: bubblescope COMMAND ...\n\n",
      BUBBLESCOPE_VERSION);
  for (const Command& command : commands())
    print_output("  {:<11} {}\n", command.name, command.summary);
  print_output(
      "\nstart with\n"
      "  bubblescope simulate 1f1b --pp 4 -m 8\n"
      "  bubblescope compare gpipe,1f1b,zb-h1 --pp 4 -m 8 --b 2\n"
      "'bubblescope COMMAND --help' explains the flags of a command, with an example.\n"
      "every command accepts --max-input SIZE: the maximum size of an unpacked file\n"
      "(default 4GiB; 512MiB for a pipe)\n"
      "exit status: 0 done, 1 a problem was found in what was asked about,\n"
      "2 bad usage or input, 3 the machine failed\n");
}

int dispatch(const Arguments& words) {
  if (words.size() > 1 && words[0] == "help") return dispatch({words[1], "--help"});
  if (words.empty() || words[0] == "--help" || words[0] == "-h" || words[0] == "help") {
    print_help();
    return words.empty() ? 2 : 0;
  }
  if (words[0] == "--version" || words[0] == "version") {
    print_output("bubblescope {}\n", BUBBLESCOPE_VERSION);
    return 0;
  }
  std::vector<std::string> names;
  for (const Command& command : commands()) {
    if (command.name == words[0]) return command.run({words.begin() + 1, words.end()});
    names.push_back(command.name);
  }
  throw Error("no command is called '" + words[0] + "'" +
              suggestion(nearest_names(words[0], names)) +
              " ('bubblescope --help' shows them all)");
}

/// A full disk behind stdout must not look like success.
int flush_output(int status) {
  const int failure = find_output_error();
  if (failure == 0 && std::ferror(stdout) == 0) return status;
  print_error("the output could not be written whole: " +
              std::generic_category().message(failure == 0 ? EIO : failure));
  return 3;
}

/// A file opened while a standard descriptor is closed would get its number, and then receive
/// printed text. Unusable files are opened in their place; output to stderr is then lost.
void hold_standard_descriptors() {
  constexpr int kModes[] = {O_WRONLY, O_RDONLY, O_WRONLY};
  for (int number = 0; number <= STDERR_FILENO; ++number)
    if (::fcntl(number, F_GETFD) < 0) ::open("/dev/null", kModes[number]);
}

int run(int count, char** values) {
  hold_standard_descriptors();
  exec::keep_freed_memory();  // later passes reuse what earlier ones have touched
  try {
    return flush_output(dispatch(take_input_limit({values + 1, values + count})));
  } catch (const Error& error) {
    print_error(error.what());
    return exit_status(error.fault());
  } catch (const std::exception& error) {
    const Error failure = to_error(error);
    print_error(failure.what());
    return exit_status(failure.fault());
  }
}

}  // namespace

}  // namespace bubblescope::tools

int main(int count, char** values) { return bubblescope::tools::run(count, values); }
