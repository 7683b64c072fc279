// Flags of ours whose names mean something else in training frameworks.
#pragma once

#include <optional>
#include <string>

namespace bubblescope::tools {

struct MeantFlag {
  std::string name;                  ///< as a command has it: "--save"
  std::optional<std::string> value;  ///< empty: the word after it is a flag, or there is none
  bool is_megatron = false;          ///< other words of the command line are Megatron-LM's alone
};

/// Both meanings, where the value shows that a framework's flag is meant; else empty.
std::string find_other_meaning(const MeantFlag& meant);

}  // namespace bubblescope::tools
