// Draws the ops of a row as cells, or as columns if there are too many for cells.
#include "traces/drawings/svg_rows.h"

#include <fmt/format.h>

#include <map>
#include <string>
#include <vector>

#include "sim/analysis/conclusions.h"
#include "sim/analysis/highest_peak.h"
#include "traces/drawings/columns.h"
#include "traces/text/time_axis.h"
#include "traces/text/wording.h"

namespace bubblescope::traces {

namespace {

constexpr double kPeakGap = 12;      ///< between the row and its peak
constexpr double kPeakBar = 56;      ///< the longest bar
constexpr double kTextDrop = 4;      ///< from a row's middle to the base line of its text
constexpr double kTextHeight = 10;   ///< rows lower than this have no text
constexpr double kLabelPitch = 12;   ///< rows closer than this share labels
constexpr std::int32_t kShared = 4;  ///< how many rows share a label

class Rows {
 public:
  Rows(SvgCanvas& canvas, const StepRecord& record, const SvgLayout& layout, const Palette& palette)
      : canvas_(canvas),
        record_(record),
        program_(record.program),
        timeline_(record.timeline),
        layout_(layout),
        palette_(palette),
        highest_peak_(find_highest_peak(record.report).activations) {}

  void draw(std::int32_t rank) {
    if (layout_.pitch >= kLabelPitch || rank % kShared == 0)
      canvas_.text({layout_.left - 8, layout_.middle(rank) + kTextDrop}, "class=\"rank\"",
                   fmt::format("rank {}", rank));
    canvas_.rect({layout_.left, layout_.top(rank), layout_.chart, layout_.height()},
                 "class=\"idle\"");
    if (!record_.report.ranks[static_cast<std::size_t>(rank)].is_recorded) {
      if (layout_.height() >= kTextHeight)
        canvas_.text({layout_.left + 5, layout_.middle(rank) + kTextDrop}, "class=\"note\"",
                     "no trace");
      return;
    }
    if (layout_.by_columns) {
      draw_columns(rank);
    } else {
      for (const InstructionId id : lane(rank)) draw_cell(id);
      draw_pairs(rank);
      draw_copies(rank);
    }
    draw_peak(rank);
  }

 private:
  const std::vector<InstructionId>& lane(std::int32_t rank) const {
    return layout_.lanes[static_cast<std::size_t>(rank)];
  }
  const Op& op(InstructionId id) const { return program_.instructions[id].op; }

  Box box_of(InstructionId id) const {
    const double begin = layout_.x(timeline_.start[id]);
    return {begin, layout_.top(program_.instructions[id].rank),
            layout_.x(timeline_.end[id]) - begin, layout_.height()};
  }

  std::string tooltip(InstructionId id) const {
    std::string text =
        fmt::format("{}: {} to {}", to_string(op(id)), layout_.moment(timeline_.start[id]),
                    layout_.moment(timeline_.end[id]));
    if (is_conclusive(record_.report)) text += ", slack " + format_time(record_.report.slack[id]);
    return text;
  }

  void draw_cell(InstructionId id) {
    const Box box = box_of(id);
    if (layout_.tooltips) canvas_.begin_group(tooltip(id));
    canvas_.rect(box, fmt::format("class=\"cell {}\"", colour_class(palette_, op(id))));
    if (has_microbatch(op(id).kind)) draw_number(id, box);
    if (layout_.tooltips) canvas_.end_group();
  }

  void draw_number(InstructionId id, const Box& box) {
    const auto fits = [&](const std::string& text) {
      return text_width(text) + 1 <= box.width && box.height >= kTextHeight;
    };
    std::string number = std::to_string(op(id).microbatch);
    const std::string sliced = number + "." + std::to_string(op(id).slice);
    if (record_.schedule->shape.slices > 1 && fits(sliced)) number = sliced;
    if (!fits(number)) return;
    const bool dark = ink_on(palette_.colour(op(id))) == Rgb{};
    canvas_.text({box.x + box.width / 2, box.y + box.height / 2 + kTextDrop},
                 dark ? "class=\"number dark\"" : "class=\"number\"", number);
  }

  void draw_copies(std::int32_t rank) {
    for (const CopyLane& copies : layout_.copies) {
      if (copies.rank != rank) continue;
      for (const InstructionId id : copies.instructions) {
        Box box = box_of(id);
        box.y = layout_.strip_top(copies) + 1;
        box.height = layout_.strip - 1;
        if (layout_.tooltips) canvas_.begin_group(tooltip(id));
        canvas_.rect(box, fmt::format("class=\"cell {}\"", colour_class(palette_, op(id))));
        if (layout_.tooltips) canvas_.end_group();
      }
    }
  }

  void draw_pairs(std::int32_t rank) {
    const std::vector<InstructionId>& ops = lane(rank);
    for (std::size_t at = 0; at + 1 < ops.size(); ++at) {
      if (op(ops[at]).pairing != Pairing::kFirst) continue;
      Box box = box_of(ops[at]);
      box.width = layout_.x(timeline_.end[ops[at + 1]]) - box.x;
      canvas_.rect(box, "class=\"pair\"");
    }
  }

  /// Draws one path per colour with strokes as thick as the row: a few bytes per change of colour.
  void draw_columns(std::int32_t rank) {
    const TimeGrid grid{layout_.step.origin, layout_.step.span, static_cast<int>(layout_.chart)};
    const PaintedRow row = paint(record_, lane(rank), grid, Paint::kInProportion);
    const auto colour_at = [&](int column) {
      return row[column] ? colour_class(palette_, op(*row[column])) : std::string();
    };
    std::map<std::string, std::string> paths;
    std::map<std::string, int> ends;
    for (int begin = 0, end = 0; begin < grid.columns; begin = end) {
      const std::string colour = colour_at(begin);
      for (end = begin + 1; end < grid.columns && colour_at(end) == colour;) ++end;
      if (colour.empty()) continue;
      std::string& path = paths[colour];
      if (path.empty())
        path = fmt::format("M{} {}", format_pixels(layout_.left + begin),
                           format_pixels(layout_.middle(rank)));
      else
        path += fmt::format("m{} 0", begin - ends[colour]);
      path += fmt::format("h{}", end - begin);
      ends[colour] = end;
    }
    for (const auto& [colour, path] : paths)
      canvas_.path(path, fmt::format("class=\"columns {}s\"", colour));
  }

  void draw_peak(std::int32_t rank) {
    const double peak = record_.report.ranks[static_cast<std::size_t>(rank)].peak.activations;
    if (highest_peak_ <= 0) return;
    const double begin = layout_.left + layout_.chart + kPeakGap;
    const double length = kPeakBar * peak / highest_peak_;
    canvas_.rect(
        {begin, layout_.top(rank) + layout_.height() * 0.2, length, layout_.height() * 0.6},
        "class=\"peak\"");
    if (layout_.height() >= kTextHeight)
      canvas_.text({begin + length + 5, layout_.middle(rank) + kTextDrop}, "class=\"note\"",
                   trim_zeros(fmt::format("{:.2f}", peak)));
  }

  SvgCanvas& canvas_;
  const StepRecord& record_;
  const Program& program_;
  const Timeline& timeline_;
  const SvgLayout& layout_;
  const Palette& palette_;
  double highest_peak_;
};

}  // namespace

std::string colour_class(const Palette& palette, const Op& op) {
  return fmt::format("{}{}", letter(op.kind), palette.chunk(op));
}

void draw_rows(SvgCanvas& canvas, const StepRecord& record, const SvgLayout& layout,
               const Palette& palette) {
  Rows rows(canvas, record, layout, palette);
  for (std::int32_t rank = 0; rank < record.program.ranks; ++rank) rows.draw(rank);
}

}  // namespace bubblescope::traces
