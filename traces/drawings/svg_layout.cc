// Computes the sizes of the SVG timeline.
#include "traces/drawings/svg_layout.h"

#include <fmt/format.h>

#include <algorithm>

#include "traces/drawings/svg_parts.h"
#include "traces/text/time_axis.h"
#include "traces/text/wording.h"

namespace bubblescope::traces {

namespace {

constexpr double kMargin = 16;
constexpr double kHead = 56;  ///< title and subtitle
constexpr double kCell = 24;  ///< preferred width of a typical op
constexpr double kMinChartWidth = 480;
constexpr double kMaxChartWidth = 1920;
constexpr double kMinCell = 3;  ///< narrower ops are drawn by columns
constexpr std::size_t kMaxCells = 20'000;
constexpr std::size_t kMaxTooltips = 5'000;
constexpr double kCharacter = 6.4;

double row_pitch(std::int32_t ranks) {
  if (ranks <= 16) return 27;
  return ranks <= 64 ? 15 : 8;
}

/// The duration that three quarters of the ops reach or exceed.
Nanos typical_duration(std::vector<Nanos> durations) {
  if (durations.empty()) return 1;
  const auto quarter = durations.begin() + static_cast<std::ptrdiff_t>(durations.size() / 4);
  std::nth_element(durations.begin(), quarter, durations.end());
  return *quarter;
}

}  // namespace

std::string SvgLayout::moment(Nanos time) const { return format_time(time - step.origin); }

double SvgLayout::top(std::int32_t rank) const { return kHead + pitch * rank; }

double text_width(std::string_view text) { return kCharacter * measure_columns(text); }

SvgLayout choose_svg_layout(const StepRecord& record) {
  const Timeline& timeline = record.timeline;
  SvgLayout layout;
  layout.lanes = find_compute_lanes(record.program);
  layout.step = divide_step(record, 1);
  layout.pitch = row_pitch(record.program.ranks);
  layout.left = kMargin + text_width(fmt::format("rank {}", record.program.ranks)) + 6;
  std::vector<Nanos> durations;
  for (const std::vector<InstructionId>& lane : layout.lanes)
    for (const InstructionId id : lane)
      if (timeline.end[id] > timeline.start[id])
        durations.push_back(timeline.end[id] - timeline.start[id]);
  const double ops_wide =
      static_cast<double>(layout.step.span) / static_cast<double>(typical_duration(durations));
  layout.chart = std::clamp(ops_wide * kCell, kMinChartWidth, kMaxChartWidth);
  layout.by_columns = layout.chart / ops_wide < kMinCell || durations.size() > kMaxCells;
  layout.copies = find_copy_lanes(record.program);
  if (!layout.copies.empty() && !layout.by_columns) {
    layout.strip = layout.pitch / 4;
    layout.pitch += 2 * layout.strip;
  }
  if (!layout.by_columns && count_parts(record.report) <= kMaxCells) {
    layout.part_lanes = find_part_lanes(record.report);
    layout.part_strip = layout.pitch / 4;
    layout.pitch += layout.part_strip * static_cast<double>(layout.part_lanes.size());
  }
  layout.tooltips = durations.size() + count_parts(record.report) <= kMaxTooltips;
  return layout;
}

}  // namespace bubblescope::traces
