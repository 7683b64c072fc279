// completion: scripts that complete commands, flags and schedule names in a shell.
#include <fmt/format.h>

#include "tools/flags/command_flags.h"
#include "tools/flags/options.h"
#include "tools/print.h"

namespace bubblescope::tools {

namespace {

std::string command_names() {
  std::string names;
  for (const Command& command : commands()) names += (names.empty() ? "" : " ") + command.name;
  return names;
}

// The scripts query the program itself, so that they are always up to date.
constexpr const char* kBash = R"shell(_bubblescope() {
  local word=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]}
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "@COMMANDS@ --help --version" -- "$word"))
  elif [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W "$(bubblescope "$command" --help 2>/dev/null | grep -oE -- '--[a-z0-9-]+')" -- "$word"))
  else
    COMPREPLY=($(compgen -W "$(bubblescope list schedules --format names)" -- "$word") $(compgen -f -- "$word"))
  fi
}
complete -F _bubblescope bubblescope
)shell";

constexpr const char* kZsh = R"shell(#compdef bubblescope
_bubblescope() {
  if (( CURRENT == 2 )); then
    compadd -- @COMMANDS@ --help --version
  elif [[ $words[CURRENT] == -* ]]; then
    compadd -- ${(f)"$(bubblescope $words[2] --help 2>/dev/null | grep -oE -- '--[a-z0-9-]+')"}
  else
    compadd -- ${(f)"$(bubblescope list schedules --format names)"}
    _files
  fi
}
compdef _bubblescope bubblescope
)shell";

constexpr const char* kFish =
    R"shell(complete -c bubblescope -n __fish_use_subcommand -a "@COMMANDS@"
complete -c bubblescope -n 'not __fish_use_subcommand' -a '(bubblescope list schedules --format names)'
complete -c bubblescope -n 'not __fish_use_subcommand' -a '(bubblescope (commandline -opc)[2] --help 2>/dev/null | string match -ra -- "--[a-z0-9-]+")'
)shell";

std::string script_for(const std::string& shell) {
  if (shell == "bash") return kBash;
  if (shell == "zsh") return kZsh;
  if (shell == "fish") return kFish;
  throw Error("no completion is known for '" + shell + "'; there is one for bash, zsh and fish");
}

}  // namespace

int run_completion(const Arguments& arguments) {
  CommandFlags app{"Print a completion script", "bubblescope completion"};
  std::string shell;
  app.add_option("SHELL", shell, "bash, zsh or fish")->required();
  app.footer("example: completion in this bash\n  source <(bubblescope completion bash)\n");
  if (!app.parse(arguments)) return 0;
  std::string script = script_for(shell);
  constexpr std::string_view kMark = "@COMMANDS@";
  script.replace(script.find(kMark), kMark.size(), command_names());
  print_output("{}", script);
  return 0;
}

}  // namespace bubblescope::tools
