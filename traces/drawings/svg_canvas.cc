// Writes SVG elements as text.
#include "traces/drawings/svg_canvas.h"

#include <fmt/format.h>

#include "sim/ir/plain_text.h"
#include "traces/text/wording.h"

namespace bubblescope::traces {

std::string escape_xml(std::string_view text) {
  std::string escaped;
  for (const char byte : escape_line(text)) {
    switch (byte) {
      case '&': escaped += "&amp;"; break;
      case '<': escaped += "&lt;"; break;
      case '>': escaped += "&gt;"; break;
      case '"': escaped += "&quot;"; break;
      default: escaped += byte;
    }
  }
  return escaped;
}

std::string format_pixels(double length) { return trim_zeros(fmt::format("{:.2f}", length)); }

void SvgCanvas::rect(const Box& box, std::string_view attributes) {
  body_ += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" {}/>\n",
                       format_pixels(box.x), format_pixels(box.y), format_pixels(box.width),
                       format_pixels(box.height), attributes);
}

void SvgCanvas::text(Point at, std::string_view attributes, std::string_view content) {
  body_ += fmt::format("<text x=\"{}\" y=\"{}\" {}>{}</text>\n", format_pixels(at.x),
                       format_pixels(at.y), attributes, escape_xml(content));
}

void SvgCanvas::line(Point from, Point to, std::string_view attributes) {
  body_ +=
      fmt::format("<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" {}/>\n", format_pixels(from.x),
                  format_pixels(from.y), format_pixels(to.x), format_pixels(to.y), attributes);
}

void SvgCanvas::path(std::string_view steps, std::string_view attributes) {
  body_ += fmt::format("<path d=\"{}\" {}/>\n", steps, attributes);
}

void SvgCanvas::begin_group(std::string_view title) {
  body_ += fmt::format("<g><title>{}</title>", escape_xml(title));
}

void SvgCanvas::end_group() { body_ += "</g>\n"; }

std::string SvgCanvas::finish(double width, double height, std::string_view style) const {
  const std::string size = fmt::format("width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\"",
                                       format_pixels(width), format_pixels(height));
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<svg xmlns=\"http://www.w3.org/2000/svg\" {}>\n<style>\n{}</style>\n{}</svg>\n",
      size, style, body_);
}

}  // namespace bubblescope::traces
