// The layout of the SVG timeline.
#pragma once

#include <string>
#include <vector>

#include "traces/drawings/columns.h"
#include "traces/drawings/svg_canvas.h"
#include "traces/files/format.h"

namespace bubblescope::traces {

struct SvgLayout {
  std::vector<std::vector<InstructionId>> lanes;  ///< [rank], compute ops in order
  std::vector<CopyLane> copies;                   ///< drawn as strips below their rank's row
  TimeGrid step;                                  ///< the time that is drawn
  double left = 0;                                ///< where the rows begin
  double chart = 0;                               ///< how wide they are
  double pitch = 0;                               ///< from one row to the next
  double strip = 0;  ///< the height of copies in one direction; 0 where none are drawn
  std::vector<PartLane> part_lanes;  ///< lanes of parts, drawn as strips below all else
  double part_strip = 0;             ///< the height of one
  bool by_columns = false;  ///< too many ops to draw one by one: columns of a pixel instead
  bool tooltips = false;    ///< every op has a tooltip

  double x(Nanos time) const {
    return left + static_cast<double>(time - step.origin) * chart / static_cast<double>(step.span);
  }
  /// Returns a time as text, counted from the step's first start, as its axis counts.
  std::string moment(Nanos time) const;
  double top(std::int32_t rank) const;
  double middle(std::int32_t rank) const { return top(rank) + height() / 2; }
  /// Returns the height of a row, without its strips and the gap to the next.
  double height() const {
    const double row = pitch - 2 * strip - part_strip * static_cast<double>(part_lanes.size());
    return row > 20 ? row - 4 : row - 1;
  }
  /// The strip of a rank's evictions, or below it that of its loads.
  double strip_top(const CopyLane& lane) const {
    return top(lane.rank) + height() + (lane.kind == OpKind::kLoad ? strip : 0);
  }
  double part_top(std::int32_t rank, std::size_t lane) const {
    return top(rank) + height() + 2 * strip + 1 + part_strip * static_cast<double>(lane);
  }
};

/// Makes a typical op wide enough to show its micro-batch, unless the picture grows too wide; rows
/// are lower where there are many.
SvgLayout choose_svg_layout(const StepRecord& record);

/// Returns the width of a text in the font of the picture's notes.
double text_width(std::string_view text);

}  // namespace bubblescope::traces
