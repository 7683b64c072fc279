// Recognizes the keys of trace events.
#pragma once

#include <cstdint>
#include <string_view>

namespace bubblescope::traces {

/// The keys of events and their arguments that matter.
enum class EventKey : std::uint8_t {
  kOther,
  kName,
  kCategory,
  kPhase,
  kProcess,
  kThread,
  kStart,
  kDuration,
  kFlow,
  kArgs,
  kCorrelation,
  kRunningNumber,
  kGroup,
  kGroupRanks,
  kPeer,
  kOp,
  kStep,
  kMicrobatch,
  kChunk
};

/// Keys are compared for every value of a file, and most differ in their first letter.
inline EventKey key_of(std::string_view key) {
  const auto is = [key](std::string_view text, EventKey found) {
    return key == text ? found : EventKey::kOther;
  };
  if (key.empty()) return EventKey::kOther;
  switch (key.front()) {
    case 'n': return is("name", EventKey::kName);
    case 'c':
      if (key.size() == 3) return is("cat", EventKey::kCategory);
      return key.size() == 5 ? is("chunk", EventKey::kChunk)
                             : is("correlation", EventKey::kCorrelation);
    case 'p': return key.size() == 2 ? is("ph", EventKey::kPhase) : is("pid", EventKey::kProcess);
    case 't': return key.size() == 2 ? is("ts", EventKey::kStart) : is("tid", EventKey::kThread);
    case 'd': return is("dur", EventKey::kDuration);
    case 'a': return is("args", EventKey::kArgs);
    case 'E': return is("Ev Idx", EventKey::kRunningNumber);
    case 'P':
      return key.size() == 19 ? is("Process Group Ranks", EventKey::kGroupRanks)
                              : is("Process Group Description", EventKey::kGroup);
    case 'S': return is("Src Rank", EventKey::kPeer);
    case 'D': return is("Dst Rank", EventKey::kPeer);
    case 'i': return is("id", EventKey::kFlow);
    case 'o': return is("op", EventKey::kOp);
    case 's': return is("step", EventKey::kStep);
    case 'm':
      if (key.size() == 5) return is("mb_id", EventKey::kMicrobatch);
      return key.size() == 10 ? is("microbatch", EventKey::kMicrobatch)
                              : is("model_chunk", EventKey::kChunk);
    default: return EventKey::kOther;
  }
}

}  // namespace bubblescope::traces
