// Writes the elements of an SVG picture. Lengths are pixels from the top left corner.
#pragma once

#include <string>
#include <string_view>

namespace bubblescope::traces {

struct Point {
  double x = 0;
  double y = 0;
};

struct Box {
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;
};

/// Returns the text with &, <, > and quotes written as entities.
std::string escape_xml(std::string_view text);

/// "12.5", "3": two decimals at most, no trailing zeros.
std::string format_pixels(double length);

/// Elements appear in the order in which they are added. `attributes` are written as they are, such
/// as `class="cell"`; texts are escaped.
class SvgCanvas {
 public:
  void rect(const Box& box, std::string_view attributes);
  void text(Point at, std::string_view attributes, std::string_view content);
  void line(Point from, Point to, std::string_view attributes);
  /// `steps` is path data: "M 1 2 h 3".
  void path(std::string_view steps, std::string_view attributes);
  /// Elements until end_group() show `title` as a tooltip.
  void begin_group(std::string_view title);
  void end_group();

  /// The whole file; `style` is CSS.
  std::string finish(double width, double height, std::string_view style) const;

 private:
  std::string body_;
};

}  // namespace bubblescope::traces
