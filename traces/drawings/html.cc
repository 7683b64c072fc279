// Writes a self-contained html page: a timeline to zoom into, the bubbles and their causes, in one
// file that loads nothing else. traces/drawings/html/ holds the page's own sources.
#include <fmt/format.h>

#include <string>
#include <string_view>

#include "sim/ir/error.h"
#include "traces/drawings/html_data.h"
#include "traces/drawings/html_page.h"
#include "traces/drawings/svg_canvas.h"

namespace bubblescope::traces {

namespace {

std::string title_of(const ReportSet& report_set) {
  std::string title;
  for (const ShownStep& step : report_set.steps) title += (title.empty() ? "" : ", ") + step.label;
  return escape_xml(title + " - bubblescope");
}

/// Fills the skeleton from start to end, each placeholder once.
void write_html(const ReportSet& report_set, const Sink& sink) {
  std::string_view rest = html_skeleton();
  const auto until = [&](std::string_view mark) {
    const std::size_t at = rest.find(mark);
    if (at == rest.npos)
      throw Error(Fault::kMachine,
                  fmt::format("the page has no {}; build the program again", mark));
    sink(rest.substr(0, at));
    rest.remove_prefix(at + mark.size());
  };
  until("@TITLE@");
  sink(title_of(report_set));
  until("@STYLE@");
  sink(html_style());
  until("@DATA@");
  write_html_data(report_set, sink);
  until("@SCRIPT@");
  for (const std::string_view script : html_scripts()) sink(script);
  sink(rest);
}

const Registrar<TimelineFormat> html_registrar{[] {
  return TimelineFormat{
      "html",
      {"page"},
      "a page for any browser, in one file: timeline to zoom, causes, memory, tables",
      {},
      {".html", ".htm"},
      write_html};
}};

}  // namespace

}  // namespace bubblescope::traces
