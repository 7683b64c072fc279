// Tells logs from traces.
#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <string_view>

#include "traces/measured/timer_log.h"
#include "traces/schedules/cell.h"

namespace bubblescope::traces {

namespace {

constexpr std::size_t kBegin = 256;  ///< the first bytes, which tell json from a log

template <std::size_t kCount>
bool contains_any(std::string_view text, const std::array<std::string_view, kCount>& marks) {
  return std::any_of(marks.begin(), marks.end(),
                     [&](std::string_view mark) { return text.find(mark) != text.npos; });
}

/// "[2025-11-04 20:13:03] iteration", "[rank0]:[titan]": no list of numbers, as json has.
bool begins_with_mark(std::string_view text) {
  const std::string_view begin = strip(text.substr(0, kBegin));
  if (!begin.starts_with('[')) return false;
  const std::string_view enclosed = begin.substr(1, begin.find(']') - 1);
  return std::any_of(enclosed.begin(), enclosed.end(), [](char letter) {
    return letter == ':' || std::isalpha(static_cast<unsigned char>(letter)) != 0;
  });
}

}  // namespace

bool begins_as_trace(std::string_view text) {
  std::string_view begin = strip(text.substr(0, kBegin));
  if (begin.starts_with('{') || begin.starts_with("SQLite format 3")) return true;
  if (!begin.starts_with('[')) return false;
  begin = strip(begin.substr(1));
  return begin.empty() || std::string_view("{[]\"").find(begin.front()) != std::string_view::npos;
}

bool is_timer_log(std::string_view text) {
  constexpr std::array<std::string_view, 2> kTimers{"across ranks (ms):", "time (ms) |"};
  return !begins_as_trace(text) && contains_any(text, kTimers);
}

bool is_training_log(std::string_view text) {
  constexpr std::array<std::string_view, 5> kIterations{
      "elapsed time per iteration (ms):", "elapsed time per iteration (s):",
      "elapsed_time_per_iteration_ms=", "iter time (s):", "train_step_timing in s:"};
  if (begins_as_trace(text) || is_timer_log(text)) return false;
  return begins_with_mark(text) || contains_any(text, kIterations) || lacks_timer_header(text);
}

bool lacks_timer_header(std::string_view text) {
  constexpr std::array<std::string_view, 1> kDots{"....: ("};
  return !begins_as_trace(text) && !is_timer_log(text) && contains_any(text, kDots);
}

}  // namespace bubblescope::traces
