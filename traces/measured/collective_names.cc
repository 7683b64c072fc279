// Compares names without their spelling.
#include "traces/measured/collective_names.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace bubblescope::traces {

namespace {

/// The letters of a name, in lower case.
std::string letters_of(const std::string& name) {
  std::string letters;
  for (const char sign : name)
    if (std::isalpha(static_cast<unsigned char>(sign)) != 0)
      letters += static_cast<char>(std::tolower(static_cast<unsigned char>(sign)));
  return letters;
}

}  // namespace

bool is_named_like_collective(const std::string& name) {
  constexpr std::array<const char*, 6> kWords{"allgather", "reducescatter", "allreduce",
                                              "alltoall",  "broadcast",     "gradssync"};
  const std::string letters = letters_of(name);
  return std::any_of(kWords.begin(), kWords.end(),
                     [&](const char* word) { return letters.find(word) != std::string::npos; });
}

}  // namespace bubblescope::traces
