// The program: finds the command in the table and turns errors into exit statuses.
// The only catch of the project is here.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <new>
#include <string>

#include "sim/ir/error.h"
#include "sim/ir/registry.h"
#include "tools/command.h"

namespace bubblescope {

namespace {

void print_help() {
  fmt::print(
      "bubblescope {} - what a pipeline schedule costs, where its bubbles come from,\n"
      "and whether it can deadlock\n\n"
      "usage: bubblescope COMMAND ...\n\n",
      BUBBLESCOPE_VERSION);
  for (const Command& command : commands())
    fmt::print("  {:<11} {}\n", command.name, command.summary);
  fmt::print(
      "\nstart with\n"
      "  bubblescope simulate 1f1b --pp 4 -m 8\n"
      "  bubblescope compare gpipe,1f1b,zb-h1 --pp 4 -m 8 --b 2\n"
      "'bubblescope COMMAND --help' explains the flags of a command, with an example.\n"
      "exit status: 0 done, 1 a problem was found in what was asked about, 2 bad usage or input,\n"
      "3 the machine failed\n");
}

int dispatch(const Arguments& words) {
  if (words.empty() || words[0] == "--help" || words[0] == "-h" || words[0] == "help") {
    print_help();
    return words.empty() ? 2 : 0;
  }
  if (words[0] == "--version") {
    fmt::print("bubblescope {}\n", BUBBLESCOPE_VERSION);
    return 0;
  }
  std::vector<std::string> names;
  for (const Command& command : commands()) {
    if (command.name == words[0]) return command.run({words.begin() + 1, words.end()});
    names.push_back(command.name);
  }
  const std::string nearest = nearest_name(words[0], names);
  throw Error("no command is called '" + words[0] + "'" + suggestion(nearest) +
              " ('bubblescope --help' shows them all)");
}

/// A full disk behind stdout must not look like success.
int flush_output(int status) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
  complain("the output could not be written whole");
  return 3;
}

int run(int count, char** values) {
  try {
    return flush_output(dispatch({values + 1, values + count}));
  } catch (const Error& error) {
    complain(error.what());
    return exit_status(error.fault());
  } catch (const std::bad_alloc&) {
    complain("out of memory; ask for fewer stages or micro-batches");
    return 3;
  } catch (const std::exception& error) {
    complain(error.what());
    return 3;
  }
}

}  // namespace

}  // namespace bubblescope

int main(int count, char** values) { return bubblescope::run(count, values); }
