// Draws parts as cells of their lanes.
#include "traces/drawings/svg_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "traces/drawings/svg_rows.h"

namespace bubblescope::traces {

namespace {

class PartStrips {
 public:
  PartStrips(SvgCanvas& canvas, const StepRecord& record, const SvgLayout& layout,
             const Palette& palette)
      : canvas_(canvas), record_(record), layout_(layout), palette_(palette) {}

  void draw() {
    for (std::int32_t rank = 0; rank < record_.program.ranks; ++rank)
      for (std::size_t lane = 0; lane < layout_.part_lanes.size(); ++lane)
        canvas_.rect({layout_.left, layout_.part_top(rank, lane), layout_.chart, height()},
                     "class=\"idle\"");
    for (const PlacedRun& placed : record_.report.parts->placed) draw(placed);
  }

 private:
  double height() const { return layout_.part_strip - 1; }

  void draw(const PlacedRun& placed) {
    const PartRun& run = record_.report.parts->runs[placed.run];
    const Nanos begin = record_.timeline.start[placed.first];
    const Nanos whole = record_.timeline.end[placed.last] - begin;
    // Where a rank is slow, parts stretch with their op.
    const auto at = [&](Nanos time) {
      return begin + (run.time == whole ? time
                                        : static_cast<Nanos>(static_cast<double>(time) *
                                                             fraction(whole, run.time)));
    };
    for (const PartSpan& span : run.spans)
      draw(placed, run.uses[span.use], span, at(span.start), at(span.end));
  }

  void draw(const PlacedRun& placed, const PartUse& use, const PartSpan& span, Nanos start,
            Nanos end) {
    const Instruction& op =
        record_.program.instructions[use.of_backward ? placed.last : placed.first];
    const auto lane = std::find(layout_.part_lanes.begin(), layout_.part_lanes.end(), use.lane) -
                      layout_.part_lanes.begin();
    const double x = layout_.x(start);
    if (layout_.tooltips)
      canvas_.begin_group(fmt::format("{} of {}, layer {}: {} to {}, lane {}", use.name,
                                      to_string(op.op), span.layer, layout_.moment(start),
                                      layout_.moment(end), kPartLanes[use.lane].name));
    canvas_.rect({x, layout_.part_top(op.rank, static_cast<std::size_t>(lane)), layout_.x(end) - x,
                  height()},
                 fmt::format("class=\"cell {}\"", colour_class(palette_, op.op)));
    if (layout_.tooltips) canvas_.end_group();
  }

  SvgCanvas& canvas_;
  const StepRecord& record_;
  const SvgLayout& layout_;
  const Palette& palette_;
};

}  // namespace

std::vector<PartLane> find_part_lanes(const BubbleReport& report) {
  std::array<bool, kPartLanes.size()> is_used{};
  if (report.parts)
    for (const PartReport& part : report.parts->parts) is_used[part.lane] = true;
  std::vector<PartLane> lanes;
  for (std::size_t lane = 0; lane < is_used.size(); ++lane)
    if (is_used[lane]) lanes.push_back(static_cast<PartLane>(lane));
  return lanes;
}

std::size_t count_parts(const BubbleReport& report) {
  std::size_t count = 0;
  if (report.parts)
    for (const PlacedRun& placed : report.parts->placed)
      count += report.parts->runs[placed.run].spans.size();
  return count;
}

void draw_parts(SvgCanvas& canvas, const StepRecord& record, const SvgLayout& layout,
                const Palette& palette) {
  if (!layout.part_lanes.empty()) PartStrips(canvas, record, layout, palette).draw();
}

}  // namespace bubblescope::traces
