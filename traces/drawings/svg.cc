// Draws the timeline as papers print it: a row per rank, time to the right, micro-batches in the
// cells.
//
//          1f1b: 4 ranks, 8 micro-batches
//          simulated: makespan 33 ms, bubble ratio 27.3 %       peak activations
//   rank 0 [0][1][2][3]            [  0 ][4][  1 ][5] ...       ==== 4
//   rank 1    [0][1][2]         [ 0 ][3] ...                    === 3
//          |----|----|----|----|  ms
//          [] forward  [] backward  [] idle  [] critical path
//
// Chunks of a rank go from dark to light. A step with more ops than can be seen one by one is drawn
// column by column, so that the file stays small.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "sim/analysis/conclusions.h"
#include "traces/drawings/svg_parts.h"
#include "traces/drawings/svg_rows.h"
#include "traces/text/palette.h"
#include "traces/text/time_axis.h"
#include "traces/text/wording.h"

namespace bubblescope::traces {

namespace {

constexpr double kTickSpacing = 64;
constexpr double kPeakColumn = 120;
constexpr double kMargin = 16;
constexpr double kSwatch = 14;
constexpr double kLegendLine = 20;

constexpr std::string_view kStyle =
    "text { font-family: Helvetica, Arial, 'Liberation Sans', sans-serif; fill: #222 }\n"
    ".title { font-size: 15px; font-weight: bold }\n"
    ".note { font-size: 12px; fill: #555 }\n"
    ".rank { font-size: 12px; text-anchor: end }\n"
    ".tick { font-size: 11px; text-anchor: middle; fill: #555 }\n"
    ".number { font-size: 11px; text-anchor: middle; fill: #fff }\n"
    ".dark { fill: #111 }\n"
    ".paper { fill: #fff }\n"
    ".idle { fill: #f0f1f3 }\n"
    ".cell { stroke: #fff; stroke-width: 0.8 }\n"
    ".columns { fill: none }\n"
    ".pair { fill: none; stroke: #222; stroke-width: 1.2 }\n"
    ".critical { fill: none; stroke: #d00000; stroke-width: 1.6; stroke-linejoin: round }\n"
    ".peak { fill: #b8bcc4 }\n"
    ".axis { stroke: #555; stroke-width: 1 }\n";

/// One entry of the legend: swatches of these classes, then a text.
struct LegendEntry {
  std::vector<std::string> swatches;
  std::string text;

  double text_begin() const {
    return swatches.empty() ? 0 : kSwatch * static_cast<double>(swatches.size()) + 6;
  }
  double width() const { return text_begin() + 0.9 * text_width(text) + 18; }
};

using LegendLine = std::vector<LegendEntry>;

/// Distributes the entries over lines of at most `width`.
std::vector<LegendLine> flow(const std::vector<LegendEntry>& entries, double width) {
  std::vector<LegendLine> lines;
  double used = width;
  for (const LegendEntry& entry : entries) {
    if (used + entry.width() > width) {
      lines.emplace_back();
      used = 0;
    }
    lines.back().push_back(entry);
    used += entry.width();
  }
  return lines;
}

class SvgTimeline {
 public:
  explicit SvgTimeline(const StepRecord& record)
      : record_(record),
        program_(record.program),
        layout_(choose_svg_layout(record)),
        palette_(record.schedule) {
    for (const std::vector<InstructionId>& lane : layout_.lanes)
      for (const InstructionId id : lane) note_colour(program_.instructions[id].op);
    if (layout_.strip > 0)
      for (const CopyLane& lane : layout_.copies)
        for (const InstructionId id : lane.instructions) note_colour(program_.instructions[id].op);
  }

  std::string draw() && {
    const std::vector<LegendLine> legend = flow(legend_entries(), layout_.chart + kPeakColumn);
    const double axis = layout_.top(program_.ranks) + 3;
    const double legend_top = axis + 36;
    const double width = layout_.left + layout_.chart + kPeakColumn;
    const double height = legend_top + kLegendLine * static_cast<double>(legend.size()) + kMargin;
    canvas_.rect({0, 0, width, height}, "class=\"paper\"");
    draw_head();
    draw_rows(canvas_, record_, layout_, palette_);
    draw_parts(canvas_, record_, layout_, palette_);
    draw_critical_path();
    draw_axis(axis);
    draw_legend(legend, legend_top);
    return canvas_.finish(width, height, std::string(kStyle) + colour_styles());
  }

 private:
  void note_colour(const Op& op) {
    colours_[colour_class(palette_, op)] = palette_.colour(op);
    std::vector<std::string>& swatches = swatches_[op.kind];
    const std::string swatch = colour_class(palette_, op);
    if (std::find(swatches.begin(), swatches.end(), swatch) == swatches.end())
      swatches.push_back(swatch);
    has_pairs_ = has_pairs_ || op.pairing != Pairing::kAlone;
  }

  /// Defines each colour as a fill, for cells, and as a stroke, for columns.
  std::string colour_styles() const {
    std::string style = fmt::format(".columns {{ stroke-width: {}px }}\n", layout_.height());
    for (const auto& [name, colour] : colours_)
      style += fmt::format(".{0} {{ fill: {1} }}\n.{0}s {{ stroke: {1} }}\n", name, hex(colour));
    return style;
  }

  void draw_head() {
    const BubbleReport& report = record_.report;
    canvas_.text({layout_.left, 22}, "class=\"title\"",
                 record_.schedule->name + ": " + shape_text(record_.schedule->shape));
    std::string facts =
        fmt::format("{}: makespan {}", record_.timeline.source, format_time(report.makespan));
    if (is_conclusive(report)) facts += ", bubble ratio " + format_percent(report.bubble->ratio);
    canvas_.text({layout_.left, 42}, "class=\"note\"", facts);
    canvas_.text({layout_.left + layout_.chart + 12, 42}, "class=\"note\"", "peak activations");
  }

  /// Frames the critical ops of each rank; lines show where the path hops to another rank. When
  /// drawn by columns, it is a line through the rows.
  void draw_critical_path() {
    std::vector<InstructionId> ops;
    for (const InstructionId id : record_.report.critical_path)
      if (program_.instructions[id].lane < static_cast<std::uint32_t>(program_.ranks))
        ops.push_back(id);
    std::string steps;
    for (std::size_t first = 0, next = 0; first < ops.size(); first = next) {
      const std::int32_t rank = rank_of(ops[first]);
      for (next = first + 1; next < ops.size() && rank_of(ops[next]) == rank;) ++next;
      const double begin = layout_.x(record_.timeline.start[ops[first]]);
      const double end = layout_.x(record_.timeline.end[ops[next - 1]]);
      const std::string corner = format_pixels(begin) + " " + format_pixels(layout_.middle(rank));
      if (!layout_.by_columns) {
        canvas_.rect({begin, layout_.top(rank), end - begin, layout_.height()},
                     "class=\"critical\"");
        if (next < ops.size()) draw_hop(end, rank, ops[next]);
      } else {
        steps += (first == 0 ? "M" : "L") + corner + "H" + format_pixels(end);
      }
    }
    if (!steps.empty()) canvas_.path(steps, "class=\"critical\"");
  }

  /// Draws a hop from the end of the critical ops on one rank to the start of those on the next.
  void draw_hop(double from_x, std::int32_t from, InstructionId to) {
    const bool down = rank_of(to) > from;
    const double from_y = layout_.top(from) + (down ? layout_.height() : 0);
    const double to_y = layout_.top(rank_of(to)) + (down ? 0 : layout_.height());
    canvas_.line({from_x, from_y}, {layout_.x(record_.timeline.start[to]), to_y},
                 "class=\"critical\"");
  }

  void draw_axis(double y) {
    const Nanos span = layout_.step.span;
    const TimeUnit unit = choose_unit(span);
    const Nanos step = choose_tick_step(
        static_cast<Nanos>(static_cast<double>(span) * kTickSpacing / layout_.chart) + 1);
    canvas_.line({layout_.left, y}, {layout_.left + layout_.chart, y}, "class=\"axis\"");
    for (Nanos tick = 0; tick <= span; tick += step) {
      const double x = layout_.x(layout_.step.origin + tick);
      canvas_.line({x, y}, {x, y + 4}, "class=\"axis\"");
      canvas_.text({x, y + 16}, "class=\"tick\"",
                   format_in_unit(tick, unit, choose_decimals({step}, unit)));
    }
    canvas_.text({layout_.left + layout_.chart + 22, y + 16}, "class=\"note\"",
                 "time in " + std::string(unit.name));
  }

  std::vector<LegendEntry> legend_entries() const {
    std::vector<LegendEntry> entries;
    for (const auto& [kind, swatches] : swatches_)
      entries.push_back({swatches, std::string(style_of(kind).meaning)});
    if (palette_.chunks() > 1)
      entries.push_back({{},
                         record_.schedule->pipelines > 1     ? "(lighter: second pipeline)"
                         : record_.schedule->side_stages > 0 ? "(lighter: shards)"
                                                             : "(lighter: later chunks)"});
    if (has_pairs_ && !layout_.by_columns) entries.push_back({{"pair"}, "overlapped pair"});
    if (!layout_.part_lanes.empty()) {
      std::string names;
      for (const PartLane lane : layout_.part_lanes)
        names += (names.empty() ? "" : ", ") + std::string(kPartLanes[lane].name);
      entries.push_back({{}, "strips: lanes " + names});
    }
    entries.push_back({{"idle"}, "idle"});
    if (is_conclusive(record_.report)) entries.push_back({{"critical"}, "critical path"});
    return entries;
  }

  void draw_legend(const std::vector<LegendLine>& lines, double top) {
    for (std::size_t line = 0; line < lines.size(); ++line) {
      double x = layout_.left;
      const double y = top + kLegendLine * static_cast<double>(line);
      for (const LegendEntry& entry : lines[line]) {
        for (std::size_t at = 0; at < entry.swatches.size(); ++at)
          canvas_.rect({x + kSwatch * static_cast<double>(at), y, kSwatch, kSwatch},
                       "class=\"" + entry.swatches[at] + "\"");
        canvas_.text({x + entry.text_begin(), y + 11}, "class=\"note\"", entry.text);
        x += entry.width();
      }
    }
  }

  std::int32_t rank_of(InstructionId id) const { return program_.instructions[id].rank; }

  const StepRecord& record_;
  const Program& program_;
  SvgLayout layout_;
  Palette palette_;
  std::map<std::string, Rgb> colours_;
  std::map<OpKind, std::vector<std::string>> swatches_;
  bool has_pairs_ = false;
  SvgCanvas canvas_;
};

const Registrar<TimelineFormat> svg_registrar{[] {
  return TimelineFormat{
      "svg",
      {},
      "timeline as a figure (SVG), in the style of the papers",
      [](const StepRecord& record, const std::string&) { return SvgTimeline(record).draw(); },
      {".svg"}};
}};

}  // namespace

}  // namespace bubblescope::traces
