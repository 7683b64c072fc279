// Recognizes the parts of overlapped ops.
#include "traces/measured/overlap_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace bubblescope::traces {

namespace {

/// The annotations of one name.
struct Part {
  std::size_t count = 0;
  Nanos kernels = 0;
};

bool is_lower(char letter) { return (letter >= 'a' && letter <= 'z') || letter == '_'; }

}  // namespace

bool is_part_name(std::string_view name) {
  constexpr std::size_t kMaxLength = 32;
  if (name.size() < 4 || name.size() > kMaxLength || !name.ends_with(')')) return false;
  const std::size_t bracket = name.size() - 3;
  const char kind = name[bracket + 1];
  const bool is_kind = kind == 'F' || kind == 'B' || kind == 'I' || kind == 'W';
  return name[bracket] == '(' && is_kind &&
         std::all_of(name.begin(), name.begin() + static_cast<std::ptrdiff_t>(bracket), is_lower);
}

std::string describe_parts(const std::vector<ChromeSlice>& parts, const ProfileActivity& activity) {
  if (parts.empty()) return {};
  std::map<std::string, Part> by_name;
  for (const ChromeSlice& slice : parts) {
    Part& part = by_name[slice.name];
    ++part.count;
    part.kernels += activity.sum_kernels({slice.start, slice.end});
  }
  std::string text;
  for (const auto& [name, part] : by_name)
    text += fmt::format(
        "{}{} {} times ({:.2f} ms of kernels each)", text.empty() ? "" : ", ", name, part.count,
        static_cast<double>(part.kernels) / static_cast<double>(part.count) / 1'000'000);
  return "; it has parts of overlapped ops, as DeepSeek annotates DualPipe: " + text +
         ". They state no stage and no micro-batch, so that they are not a step of a pipeline; "
         "their times can be the \"parts\" of a cost file";
}

}  // namespace bubblescope::traces
