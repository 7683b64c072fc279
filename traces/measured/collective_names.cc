// Compares names without their spelling.
#include "traces/measured/collective_names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <utility>

namespace bubblescope::traces {

namespace {

/// Returns the letters of a name, in lower case.
std::string letters_of(std::string_view name) {
  std::string letters;
  for (const char sign : name)
    if (std::isalpha(static_cast<unsigned char>(sign)) != 0)
      letters += static_cast<char>(std::tolower(static_cast<unsigned char>(sign)));
  return letters;
}

}  // namespace

CollectiveKind classify_collective(std::string_view name) {
  using Word = std::pair<std::string_view, CollectiveKind>;
  constexpr std::array<Word, 5> kWords{{{"allreduce", CollectiveKind::kAllReduce},
                                        {"allgather", CollectiveKind::kAllGather},
                                        {"reducescatter", CollectiveKind::kReduceScatter},
                                        {"alltoall", CollectiveKind::kAllToAll},
                                        {"broadcast", CollectiveKind::kBroadcast}}};
  const std::string letters = letters_of(name);
  const auto found = std::find_if(kWords.begin(), kWords.end(), [&](const Word& word) {
    return letters.find(word.first) != letters.npos;
  });
  return found == kWords.end() ? CollectiveKind::kOther : found->second;
}

bool is_named_like_collective(std::string_view name) {
  // Megatron-LM's timers do not say by which operation gradients are reduced.
  return classify_collective(name) != CollectiveKind::kOther ||
         letters_of(name).find("gradssync") != std::string::npos;
}

std::string_view name_of(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kOther: return "other collectives";
    case CollectiveKind::kAllReduce: return "all-reduce";
    case CollectiveKind::kAllGather: return "all-gather";
    case CollectiveKind::kReduceScatter: return "reduce-scatter";
    case CollectiveKind::kAllToAll: return "all-to-all";
    case CollectiveKind::kBroadcast: return "broadcast";
  }
  return "";
}

}  // namespace bubblescope::traces
