// Where things stand in the SVG timeline.
#pragma once

#include <vector>

#include "traces/columns.h"
#include "traces/format.h"
#include "traces/svg_canvas.h"

namespace bubblescope {

struct SvgLayout {
  std::vector<std::vector<InstructionId>> lanes;  ///< [rank], compute ops in order
  TimeGrid step;                                  ///< the time that is drawn
  double left = 0;                                ///< where the rows begin
  double chart = 0;                               ///< how wide they are
  double pitch = 0;                               ///< from one row to the next
  bool by_columns = false;  ///< too many ops to draw one by one: columns of a pixel instead
  bool tips = false;        ///< every op has a text to point at

  double x(Nanos time) const {
    return left + static_cast<double>(time - step.origin) * chart / static_cast<double>(step.span);
  }
  double top(std::int32_t rank) const;
  double middle(std::int32_t rank) const { return top(rank) + height() / 2; }
  /// Of a row, without the gap to the next.
  double height() const { return pitch > 20 ? pitch - 4 : pitch - 1; }
};

/// Gives a typical op a width that shows its micro-batch, as far as the picture does not grow too
/// wide; rows are lower where there are many.
SvgLayout choose_svg_layout(const Recording& recording);

/// The width of a text of the picture's note size.
double text_width(std::string_view text);

}  // namespace bubblescope
