// Reads command lines in the words of training frameworks.
//
//   --tensor_model_parallel_size 8     ->  --tensor-model-parallel-size 8
//   --zero-stage 1                     ->  --zero 1
//   --bf16 --fp8-format hybrid         ->  --precision=fp8
//   --sequence-parallel                ->  nothing, because it holds anyway
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/flags/command_flags.h"

namespace bubblescope::tools {

/// Returns the words with the command's own flags in place of equivalent flags of frameworks, and
/// with the values of a list flag in one word. Flags that say nothing here stay. Throws Error if
/// two flags contradict each other and one of them is a framework's, or if a value shows that a
/// flag is meant as a framework's flag of the same name.
std::vector<std::string> read_framework_words(const CommandFlags& app,
                                              const std::vector<std::string>& words);

/// A flag of a command, and the name by which it was given, which may be a framework's.
struct NamedFlag {
  const CommandFlag* flag;
  std::string name;
};

/// Returns the flags among the words, including those that ask for what holds anyway.
std::vector<NamedFlag> names_as_given(const CommandFlags& app,
                                      const std::vector<std::string>& words);

/// Whether some flag of the words is Megatron-LM's, and no other framework's.
bool has_megatron_words(const std::vector<std::string>& words);

/// Whether a flag with this name is among the words, with '_' or '-' between words, and its value
/// is not "false".
bool names_flag(const std::vector<std::string>& words, std::string_view plain_name);

}  // namespace bubblescope::tools
