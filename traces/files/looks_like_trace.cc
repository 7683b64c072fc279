// Searches for the words that formats of traces begin with.
#include "traces/files/looks_like_trace.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace bubblescope::traces {

bool looks_like_trace(std::string_view text) {
  constexpr std::size_t kBegin = 4096;
  constexpr std::array<std::string_view, 7> kMarks{"\"ph\"",
                                                   "\"traceEvents\"",
                                                   "\"schemaVersion\"",
                                                   "\"resourceSpans\"",
                                                   "bubblescope-timeline/",
                                                   "SQLite format 3",
                                                   "rank,lane,op"};
  const std::string_view begin = text.substr(0, kBegin);
  return std::any_of(kMarks.begin(), kMarks.end(),
                     [&](std::string_view mark) { return begin.find(mark) != begin.npos; });
}

}  // namespace bubblescope::traces
