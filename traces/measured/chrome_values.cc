// Interprets the names and times of trace events.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "sim/ir/counted.h"
#include "sim/ir/number.h"
#include "traces/measured/chrome_events.h"
#include "traces/schedules/cell.h"

namespace bubblescope::traces {

namespace {

/// Limits times and durations alike: with the base of a profile, their sum fits into 64 bits.
constexpr Nanos kMaxTime = std::int64_t{1} << 61;

bool is_decimal_digit(char letter) { return letter >= '0' && letter <= '9'; }

/// With an exponent, which only small numbers have in practice, a double is exact enough.
std::optional<Nanos> parse_scientific(std::string_view text) {
  const auto micros = parse_number<double>(text);
  if (!micros) return {};
  const double nanos = std::round(*micros * 1000);
  if (!(std::abs(nanos) < static_cast<double>(kMaxTime))) return {};
  return static_cast<Nanos>(nanos);
}

}  // namespace

std::optional<Nanos> parse_micros(std::string_view text) {
  if (text.find_first_of("eE") != text.npos) return parse_scientific(text);
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  const std::string_view whole = text.substr(0, text.find('.'));
  const std::string_view fraction = text.substr(std::min(text.size(), whole.size() + 1));
  if (whole.empty() || !std::all_of(whole.begin(), whole.end(), is_decimal_digit)) return {};
  if (!std::all_of(fraction.begin(), fraction.end(), is_decimal_digit)) return {};
  Nanos nanos = 0;
  for (const char digit : whole) {
    if (nanos > kMaxTime / 10'000) return {};
    nanos = nanos * 10 + (digit - '0');
  }
  for (std::size_t place = 0; place < 3; ++place)
    nanos = nanos * 10 + (place < fraction.size() ? fraction[place] - '0' : 0);
  if (fraction.size() > 3 && fraction[3] >= '5') ++nanos;
  return negative ? -nanos : nanos;
}

bool is_chrome_trace(std::string_view text) {
  const std::string_view begin = strip(text.substr(0, 96));
  if (begin.starts_with('[')) return true;
  const bool is_other =
      begin.find("bubblescope-") != begin.npos || begin.find("\"resourceSpans\"") != begin.npos;
  return begin.starts_with('{') && !is_other;
}

bool is_named_by_user(std::string_view category) {
  constexpr std::array<std::string_view, 9> kOfLibraries{
      "cpu_op",     "kernel",          "cuda_runtime", "cuda_driver", "gpu_memcpy",
      "gpu_memset", "python_function", "overhead",     "cuda_sync"};
  return std::find(kOfLibraries.begin(), kOfLibraries.end(), category) == kOfLibraries.end();
}

std::string describe_missing_list(const ChromeEvents& events) {
  if (events.has_list) return "";
  if (events.schema.find("chakra") == std::string::npos)
    return "this json has no list of events (traceEvents), so it is no trace";
  return "this is an execution trace of PyTorch (ExecutionTraceObserver), which has operators "
         "without times; give the profile of the same steps (export_chrome_trace())";
}

std::string describe_left_out(const ChromeEvents& events) {
  constexpr std::size_t kShown = 12;
  std::vector<std::pair<std::string, std::int64_t>> shown(events.left_out.begin(),
                                                          events.left_out.end());
  if (shown.size() > kShown) {
    std::stable_sort(shown.begin(), shown.end(), [](const auto& left, const auto& right) {
      return left.second > right.second;
    });
    shown.resize(kShown);
  }
  std::string text;
  for (const auto& [category, count] : shown)
    text += (text.empty() ? "" : ", ") + (category.empty()
                                              ? counted(count, "slice") + " without category"
                                              : fmt::format("{} {}", count, category));
  if (const std::int64_t further = std::ssize(events.left_out) - std::ssize(shown); further > 0)
    text += " and slices of " + counted(further, "further category");
  return text;
}

std::string describe_negative_durations(std::int64_t slices) {
  return fmt::format(
      "{} had a duration below zero, as of what had not ended when the trace did: it is taken to "
      "have none, and what it did is missing from busy times",
      counted(slices, "slice"));
}

}  // namespace bubblescope::traces
