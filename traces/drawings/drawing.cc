// Draws the timeline in the terminal.
#include "traces/drawings/drawing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "traces/drawings/columns.h"
#include "traces/text/fit_table.h"
#include "traces/text/palette.h"
#include "traces/text/shown_ranks.h"
#include "traces/text/time_axis.h"
#include "traces/text/wording.h"
#include "traces/timelines/made_with.h"

namespace bubblescope::traces {

namespace {

constexpr int kMinWidth = 40;
constexpr int kMaxBands = 4;
constexpr int kMaxLines = 42;        ///< of all bands together: one screen
constexpr int kMaxColumnsPerOp = 8;  ///< of the shortest op: wider cells show no more
constexpr int kTickSpacing = 9;      ///< minimum columns between two ticks
constexpr const char* kReset = "\x1b[0m";

/// The mapping of time to columns.
struct Layout {
  TimeGrid grid;
  int columns_per_band = 0;
  int label_width = 0;
  bool labelled = true;  ///< cells name micro-batches; false where a column stands for several ops
  bool whole_names = true;  ///< false where only the last digits fit the shortest ops
};

/// Counts all recorded ranks, shown or not, so that drawings of one step have one scale.
Nanos shortest_op(const StepRecord& record) {
  Nanos shortest = std::numeric_limits<Nanos>::max();
  for (InstructionId id = 0; id < record.program.size(); ++id) {
    const std::uint32_t lane = record.program.instructions[id].lane;
    if (lane >= record.report.ranks.size() || !record.report.ranks[lane].is_recorded) continue;
    const Nanos duration = record.timeline.end[id] - record.timeline.start[id];
    if (duration > 0) shortest = std::min(shortest, duration);
  }
  return shortest;
}

int divide_up(Nanos dividend, Nanos divisor) {
  return static_cast<int>((dividend + divisor - 1) / divisor);
}

/// The space available for a step.
struct DrawingSize {
  int columns = 0;      ///< of one band
  int rows = 0;         ///< ranks
  int name_length = 0;  ///< of the longest name of an op
};

/// Gives the shortest op as many columns as its name needs, or as many as the bands allow.
Layout choose_layout(const TimeGrid& step, Nanos shortest, const DrawingSize& room) {
  const int max_bands = std::clamp(kMaxLines / (room.rows + 2), 1, kMaxBands);
  // A step without duration has no shortest op.
  shortest = std::max<Nanos>(1, std::min(shortest, step.span));
  const Nanos units = std::max<Nanos>(1, (step.span + shortest - 1) / shortest);
  const Nanos columns_per_op = Nanos{max_bands} * room.columns / units;
  if (columns_per_op == 0)
    return {{step.origin, step.span, room.columns}, room.columns, 0, false, true};
  const Nanos wanted = std::max<Nanos>(room.name_length, room.columns / units);
  const auto width = static_cast<int>(std::min({columns_per_op, wanted, Nanos{kMaxColumnsPerOp}}));
  const int bands = divide_up(units, room.columns / width);
  Layout layout;
  layout.grid = {step.origin, units * shortest, static_cast<int>(units) * width};
  layout.columns_per_band = divide_up(units, bands) * width;
  layout.whole_names = width >= room.name_length;
  return layout;
}

/// Columns [begin, end) of a row that show the same thing.
struct Run {
  std::optional<InstructionId> id;
  int columns = 0;
  bool begins = true;  ///< false where an earlier band shows its start
  bool ends = true;    ///< false where a later band shows its end
};

/// Visits the runs of columns [begin, end).
void for_each_run(const PaintedRow& row, int begin, int end, const auto& visit) {
  const auto continues = [&](int at) { return row[at] == row[at - 1]; };
  const auto columns = static_cast<int>(row.size());
  for (int at = begin; at < end;) {
    int next = at + 1;
    while (next < end && continues(next)) ++next;
    visit(Run{row[at], next - at, at == 0 || !continues(at), next == columns || !continues(next)});
    at = next;
  }
}

/// "12", "12.1" with slices; the last digits where that does not fit, unless the end of a band cut
/// it.
std::string microbatch_text(const Op& op, int slices, const Run& run, int room) {
  if (!run.begins || !has_microbatch(op.kind)) return {};
  std::string text = std::to_string(op.microbatch);
  if (slices > 1) {
    const std::string sliced = text + "." + std::to_string(op.slice);
    if (static_cast<int>(sliced.size()) <= room) return sliced;
  }
  const int excess = static_cast<int>(text.size()) - room;
  if (excess <= 0) return text;
  return run.ends ? text.substr(static_cast<std::size_t>(excess)) : "";
}

void append_repeated(std::string& text, std::string_view glyph, int times) {
  for (; times > 0; --times) text += glyph;
}

class TimelineDrawing {
 public:
  TimelineDrawing(const StepRecord& record, const DrawOptions& options)
      : record_(record), options_(options), palette_(record.schedule) {
    ranks_ = choose_shown_ranks(record.report, options.all_ranks);
    std::vector<std::vector<InstructionId>> lanes = find_compute_lanes(record.program, ranks_);
    for (std::size_t rank = 0; rank < record.report.ranks.size(); ++rank)
      if (!record.report.ranks[rank].is_recorded) lanes[rank].clear();
    const int label_width =
        static_cast<int>(fmt::formatted_size("rank {}  ", record.program.ranks - 1));
    const auto name_length = static_cast<int>(fmt::formatted_size(
        "{}{}", options.colour ? "" : "F", record.schedule->shape.microbatches - 1));
    const std::vector<CopyLane> copies = shown_copies();
    const DrawingSize room{std::max(options.width, kMinWidth) - label_width,
                           static_cast<int>(ranks_.size() + copies.size()), name_length};
    layout_ = choose_layout(divide_step(record, 1), shortest_op(record), room);
    layout_.label_width = label_width;
    unit_ = choose_unit(layout_.grid.span);
    for (const std::int32_t rank : ranks_) {
      add_row(fmt::format("rank {}", rank), lanes[rank]);
      for (const CopyLane& lane : copies)
        if (lane.rank == rank)
          add_row(fmt::format(" {}", style_of(lane.kind).meaning), lane.instructions);
    }
  }

  std::string draw() const {
    std::string text = title();
    for (int begin = 0; begin < layout_.grid.columns; begin += layout_.columns_per_band) {
      const int end = std::min(begin + layout_.columns_per_band, layout_.grid.columns);
      if (begin > 0) text += "\n";
      text += axis(begin, end);
      for (std::size_t at = 0; at < rows_.size(); ++at) append_row(text, at, begin, end);
    }
    return text + legend();
  }

 private:
  const Op& op(InstructionId id) const { return record_.program.instructions[id].op; }

  std::int32_t slices() const { return record_.schedule->shape.slices; }

  std::string title() const {
    const std::string& name = record_.schedule->name;
    const std::string& source = record_.timeline.source;
    return fmt::format("{}: {}{}{}\n", name, shape_text(record_.schedule->shape),
                       source == name ? "" : ", " + source, conditions_text(record_.made));
  }

  std::string axis(int begin, int end) const {
    const TimeGrid& grid = layout_.grid;
    std::string text = fmt::format("{:>{}}  ", unit_.name, std::max(layout_.label_width - 2, 0));
    const Nanos step = choose_tick_step(
        std::max<Nanos>(1, static_cast<Nanos>(static_cast<double>(kTickSpacing) *
                                              static_cast<double>(grid.span) / grid.columns)));
    const int decimals = choose_decimals({step}, unit_);
    int drawn = begin;
    Nanos tick = (grid.start_of(begin) - grid.origin + step - 1) / step * step;
    for (int column = begin; column < end; ++column) {
      if (grid.start_of(column + 1) - grid.origin <= tick) continue;
      const std::string number = format_in_unit(tick, unit_, decimals);
      tick += step;
      const auto length = static_cast<int>(number.size()) + 1;
      if (column < drawn || column + length > end) continue;
      text += std::string(static_cast<std::size_t>(column - drawn), ' ') + "╷" + number;
      drawn = column + length;
    }
    return text + "\n";
  }

  /// Below a rank's row there is one copy lane per direction in which it copies activations.
  std::vector<CopyLane> shown_copies() const {
    if (record_.schedule->offload_target_of_rank.empty()) return {};
    std::vector<CopyLane> lanes = find_copy_lanes(record_.program);
    std::erase_if(lanes, [&](const CopyLane& lane) {
      return std::find(ranks_.begin(), ranks_.end(), lane.rank) == ranks_.end();
    });
    return lanes;
  }

  void add_row(std::string label, const std::vector<InstructionId>& lane) {
    labels_.push_back(std::move(label));
    rows_.push_back(paint(record_, lane, layout_.grid,
                          layout_.labelled ? Paint::kLargestShare : Paint::kInProportion));
  }

  void append_row(std::string& text, std::size_t at, int begin, int end) const {
    fmt::format_to(std::back_inserter(text), "{:<{}}", labels_[at], layout_.label_width);
    for_each_run(rows_[at], begin, end, [&](const Run& run) {
      if (options_.colour)
        text += coloured_cell(run);
      else
        append_plain_cell(text, run);
    });
    text += "\n";
  }

  void append_plain_cell(std::string& text, const Run& run) const {
    if (!run.id) return append_repeated(text, "·", run.columns);
    const Op& shown = op(*run.id);
    if (!layout_.labelled) {
      text.append(static_cast<std::size_t>(run.columns), plain_letter(shown));
      return;
    }
    int left = run.columns;
    if (run.begins) {
      const std::string microbatch = microbatch_text(shown, slices(), run, run.columns - 1);
      text += plain_letter(shown);
      text += microbatch;
      left -= 1 + static_cast<int>(microbatch.size());
    }
    append_repeated(text, shown.pairing == Pairing::kAlone ? "─" : "═", left);
  }

  char plain_letter(const Op& shown) const {
    const char kind = letter(shown.kind);
    const bool odd = palette_.chunk(shown) % 2 == 1;
    return odd ? static_cast<char>(kind - 'A' + 'a') : kind;
  }

  std::string coloured_cell(const Run& run) const {
    if (!run.id) {
      std::string idle = "\x1b[2m";
      append_repeated(idle, "·", run.columns);
      return idle + kReset;
    }
    const Op& shown = op(*run.id);
    std::string name;
    if (layout_.labelled) name = microbatch_text(shown, slices(), run, run.columns);
    const bool paired = shown.pairing != Pairing::kAlone;
    return swatch(shown, fmt::format("{:^{}}", name, run.columns), paired);
  }

  /// Odd micro-batches are bold, which separates cells without borders: colours show kinds.
  std::string swatch(const Op& shown, const std::string& content, bool underlined) const {
    const TerminalColours colours = palette_.terminal(shown);
    const bool bold = has_microbatch(shown.kind) && shown.microbatch % 2 == 1;
    return fmt::format("\x1b[{}{}48;5;{};38;5;{}m{}{}", underlined ? "4;" : "", bold ? "1;" : "",
                       colours.background, colours.ink, content, kReset);
  }

  std::string legend() const {
    std::set<OpKind> kinds;
    bool paired = false;
    bool continued = false;
    for (const PaintedRow& row : rows_)
      for (std::size_t at = 0; at < row.size(); ++at) {
        if (!row[at]) continue;
        if (at > 0 && row[at] == row[at - 1]) {
          continued = true;
          continue;
        }
        kinds.insert(op(*row[at]).kind);
        paired = paired || op(*row[at]).pairing != Pairing::kAlone;
      }
    std::vector<std::string> entries;
    for (const OpKind kind : kinds) entries.push_back(legend_of(kind));
    entries.push_back("· idle");
    const bool colour = options_.colour;
    if (layout_.labelled && continued && !colour) entries.push_back("─ continues");
    if (paired && (colour || layout_.labelled))
      entries.push_back(colour ? "underlined: overlapped pair" : "═ overlapped pair");
    if (palette_.chunks() > 1)
      entries.push_back(fmt::format("{}: {}", colour ? "lighter" : "lower case",
                                    record_.schedule->pipelines > 1     ? "second pipeline"
                                    : record_.schedule->side_stages > 0 ? "shard"
                                                                        : "odd chunk"));
    return wrap(entries, "", "  ", std::max(options_.width, kMinWidth)) + notes();
  }

  std::string legend_of(OpKind kind) const {
    if (!options_.colour) return fmt::format("{} {}", letter(kind), style_of(kind).meaning);
    const Op sample{0, 0, 0, kind, Pairing::kAlone};
    return swatch(sample, std::string(" ") + letter(kind) + " ", false) + " " +
           std::string(style_of(kind).meaning);
  }

  std::string notes() const {
    std::string text;
    if (!layout_.labelled)
      text += fmt::format(
          "a column is {}; over several columns, kinds fill "
          "columns as they fill time\n",
          format_time(layout_.grid.span / layout_.grid.columns));
    if (!layout_.whole_names) text += "short cells hold the last digits of their micro-batch\n";
    const std::string left_out = describe_shown_ranks(record_.report, options_.all_ranks);
    if (!left_out.empty()) text += left_out + "\n";
    return options_.fit ? fold_lines(text, options_.width) : text;
  }

  const StepRecord& record_;
  const DrawOptions& options_;
  Palette palette_;
  std::vector<std::int32_t> ranks_;
  Layout layout_;
  TimeUnit unit_;
  std::vector<std::string> labels_;
  std::vector<PaintedRow> rows_;  ///< parallel to the labels
};

}  // namespace

std::string draw_timeline(const StepRecord& record, const DrawOptions& options) {
  if (record.program.size() == 0) return "nothing runs in this step\n";
  return TimelineDrawing(record, options).draw();
}

}  // namespace bubblescope::traces
