// Finds the fullest ranks.
#include "traces/reports/held_text.h"

#include <fmt/format.h>

#include <tuple>

#include "sim/ir/bytes_text.h"
#include "sim/ir/counted.h"
#include "sim/ir/send_budget.h"

namespace bubblescope::traces {

namespace {

using Counted = std::optional<BufferPeak> Peak::*;

struct Fullest {
  std::size_t rank = 0;
  BufferPeak peak;
};

/// The rank with the most bytes, or the most buffers where bytes are unknown.
std::optional<Fullest> find_fullest(const BubbleReport& report, Counted counted) {
  std::optional<Fullest> fullest;
  for (std::size_t rank = 0; rank < report.ranks.size(); ++rank) {
    const std::optional<BufferPeak>& peak = report.ranks[rank].peak.*counted;
    if (!peak) continue;
    if (!fullest ||
        std::tie(peak->bytes, peak->count) > std::tie(fullest->peak.bytes, fullest->peak.count))
      fullest = Fullest{rank, *peak};
  }
  return fullest;
}

std::string bytes_text(const BufferPeak& peak) {
  return peak.bytes ? ", " + format_bytes(*peak.bytes) : "";
}

std::string budget_text(std::optional<std::int32_t> budget) {
  if (!budget) return "";
  if (*budget == kUnlimitedSends) return "; without a send budget";
  return fmt::format("; with a send budget of {}", *budget);
}

}  // namespace

std::string write_held_text(const BubbleReport& report, std::optional<std::int32_t> send_budget) {
  std::string text;
  if (const auto fullest = find_fullest(report, &Peak::outputs))
    text += fmt::format("outputs      rank {} holds up to {} until their sends end{}{}\n",
                        fullest->rank, fullest->peak.count, bytes_text(fullest->peak),
                        budget_text(send_budget));
  if (const auto fullest = find_fullest(report, &Peak::gathered))
    text += fmt::format("gathered     rank {} holds the weights of up to {}{}\n", fullest->rank,
                        counted(fullest->peak.count, "stage"), bytes_text(fullest->peak));
  return text;
}

}  // namespace bubblescope::traces
