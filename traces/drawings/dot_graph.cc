// Draws boxes on a time axis and the edges between them.
#include "traces/drawings/dot_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/analysis/conclusions.h"
#include "sim/ir/after_edges.h"
#include "sim/ir/plain_text.h"
#include "traces/drawings/columns.h"
#include "traces/text/palette.h"
#include "traces/text/time_axis.h"
#include "traces/text/wording.h"

namespace bubblescope::traces {

namespace {

// Lengths are points, 72 to the inch; y grows upwards.
constexpr double kTypicalBox = 62;
constexpr double kMinBox = 8;
constexpr double kGap = 9;  ///< between two boxes without idle time between them: room for an arrow
constexpr double kBoxHeight = 26;
constexpr double kRowPitch = 84;
constexpr double kLabel = 60;  ///< room for row labels, left of the first box
constexpr double kPointsPerInch = 72;
constexpr double kArrow = 6;    ///< length of an arrow head
constexpr double kGutter = 20;  ///< between a row and an edge that passes it
constexpr double kCharacter = 7;
constexpr double kLatencyOffset = 22;  ///< from the middle of an edge to its latency

struct CurvePoint {
  double x = 0;
  double y = 0;
};

/// A cubic curve in DOT syntax. Its arrow head fills the last piece, up to `tip`.
std::string curve(CurvePoint begin, CurvePoint leave, CurvePoint arrive, CurvePoint tip) {
  const double length = std::hypot(tip.x - arrive.x, tip.y - arrive.y);
  const double back = length > 0 ? kArrow / length : 0;
  const CurvePoint end{tip.x - back * (tip.x - arrive.x), tip.y - back * (tip.y - arrive.y)};
  return fmt::format("e,{:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f}",
                     tip.x, tip.y, begin.x, begin.y, leave.x, leave.y, arrive.x, arrive.y, end.x,
                     end.y);
}

std::string escape_dot(std::string_view text) {
  std::string escaped;
  for (const char byte : escape_line(text)) {
    if (byte == '"' || byte == '\\') escaped += '\\';
    escaped += byte;
  }
  return escaped;
}

/// The drawing of an instruction. A message is an edge if it occupies no lane, has one producer and
/// is consumed. Posts and waits are not drawn, because they wait for other instructions.
enum class Shown : std::uint8_t { kBox, kEdge, kNothing };

/// The producer of a message, if it is a single instruction.
std::optional<InstructionId> find_producer(const Program& program, InstructionId message) {
  std::optional<InstructionId> producer;
  for (const InstructionId dependency : program.dependencies_of(message)) {
    if (program.instructions[dependency].role != Role::kWork) continue;
    if (producer) return {};
    producer = dependency;
  }
  return producer;
}

std::vector<Shown> choose_shown(const Program& program) {
  std::vector<bool> needed(program.size(), false);
  for (const InstructionId dependency : program.dependencies) needed[dependency] = true;
  std::vector<Shown> shown(program.size(), Shown::kBox);
  for (InstructionId id = 0; id < program.size(); ++id) {
    const Instruction& instruction = program.instructions[id];
    if (instruction.role != Role::kWork)
      shown[id] = Shown::kNothing;
    else if (is_message(instruction) && instruction.lane == kNoLane && needed[id] &&
             find_producer(program, id))
      shown[id] = Shown::kEdge;
  }
  return shown;
}

class DotGraph {
 public:
  explicit DotGraph(const StepRecord& record)
      : record_(record),
        program_(record.program),
        timeline_(record.timeline),
        palette_(record.schedule),
        shown_(choose_shown(record.program)),
        before_in_path_(record.program.size()) {
    for (InstructionId id = 0; id < program_.size(); ++id)
      if (shown_[id] == Shown::kBox) rows_[row_key(id)].push_back(id);
    double y = 0;
    for (const auto& [key, ids] : rows_) {
      y_of_row_[key] = y;
      y -= kRowPitch;
    }
    choose_scale();
    mark_critical_path();
  }

  std::string write() && {
    print("digraph \"{}\" {{\n", escape_dot(record_.schedule->name));
    print("  layout=nop2 rankdir=LR labelloc=t fontname=\"Helvetica\" fontsize=16\n");
    print("  label=\"{}: {}, makespan {}\"\n", escape_dot(record_.schedule->name),
          shape_text(record_.schedule->shape), format_time(record_.report.makespan));
    print(
        "  node [shape=box style=filled fixedsize=true fontname=\"Helvetica\" fontsize=11 "
        "penwidth=0.6]\n");
    print("  edge [fontname=\"Helvetica\" fontsize=9 arrowsize=0.6]\n");
    for (std::int32_t rank = 0; rank < program_.ranks; ++rank) write_rank(rank);
    write_lane_order();
    for (InstructionId id = 0; id < program_.size(); ++id)
      if (shown_[id] == Shown::kBox) write_dependencies(id);
    print("}}\n");
    return fmt::to_string(out_);
  }

 private:
  using RowKey = std::pair<std::int32_t, std::uint32_t>;  ///< rank and lane

  template <class... Values>
  void print(fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(fmt::appender(out_), format, std::forward<Values>(values)...);
  }

  const Instruction& instruction(InstructionId id) const { return program_.instructions[id]; }
  RowKey row_key(InstructionId id) const { return {instruction(id).rank, instruction(id).lane}; }
  double y(InstructionId id) const { return y_of_row_.at(row_key(id)); }
  double x(Nanos time) const {
    return static_cast<double>(time - origin_) / static_cast<double>(typical_) * kTypicalBox;
  }
  double left(InstructionId id) const { return x(timeline_.start[id]) + kGap / 2; }
  double right(InstructionId id) const {
    return std::max(x(timeline_.end[id]) - kGap / 2, left(id) + kMinBox);
  }
  bool is_critical_edge(InstructionId from, InstructionId to) const {
    return before_in_path_[to] == from;
  }

  /// Chooses the scale so that the names of all but the shortest quarter of the ops fit into their
  /// boxes.
  void choose_scale() {
    std::vector<Nanos> durations;
    for (const auto& [key, ids] : rows_)
      for (const InstructionId id : ids)
        if (timeline_.end[id] > timeline_.start[id])
          durations.push_back(timeline_.end[id] - timeline_.start[id]);
    origin_ = divide_step(record_, 1).origin;
    if (durations.empty()) return;
    const auto quarter = durations.begin() + static_cast<std::ptrdiff_t>(durations.size() / 4);
    std::nth_element(durations.begin(), quarter, durations.end());
    typical_ = *quarter;
  }

  void mark_critical_path() {
    std::optional<InstructionId> before;
    for (const InstructionId id : record_.report.critical_path) {
      critical_.insert(id);
      if (shown_[id] != Shown::kBox) continue;
      before_in_path_[id] = before;
      before = id;
    }
  }

  void write_rank(std::int32_t rank) {
    print(
        "  subgraph cluster_rank{} {{\n    label=\"rank {}\" labeljust=l fontsize=12 "
        "color=\"#dddddd\"",
        rank, rank);
    const auto first = rows_.lower_bound({rank, 0});
    const auto last = rows_.upper_bound({rank, kNoLane});
    if (first != last) {
      const double above = y_of_row_.at(first->first) + kBoxHeight;
      const double below = y_of_row_.at(std::prev(last)->first) - kBoxHeight;
      print(" bb=\"{:.1f},{:.1f},{:.1f},{:.1f}\" lp=\"{:.1f},{:.1f}\"", -kLabel, below,
            x(origin_ + record_.report.makespan) + kGap, above, -kLabel / 2, above - kBoxHeight);
    }
    print("\n");
    for (auto row = first; row != last; ++row)
      for (const InstructionId id : row->second) write_node(id);
    print("  }}\n");
  }

  void write_node(InstructionId id) {
    const Op& op = instruction(id).op;
    const double width = right(id) - left(id);
    const std::string name = to_string(instruction(id));
    const bool fits = kCharacter * static_cast<double>(name.size()) <= width;
    const Rgb colour = palette_.colour(op);
    print(
        "    n{} [label=\"{}\" pos=\"{:.1f},{:.1f}\" width={:.3f} height={:.3f} fillcolor=\"{}\" "
        "fontcolor=\"{}\"",
        id, fits ? name : "", (left(id) + right(id)) / 2, y(id), width / kPointsPerInch,
        kBoxHeight / kPointsPerInch, hex(colour), hex(ink_on(colour)));
    if (critical_.contains(id)) print(" color=red penwidth=2");
    print(" tooltip=\"{}: {} to {}", name, format_time(timeline_.start[id] - origin_),
          format_time(timeline_.end[id] - origin_));
    if (is_conclusive(record_.report)) print(", slack {}", format_time(record_.report.slack[id]));
    print("\"]\n");
  }

  bool depends(InstructionId id, InstructionId on) const {
    const auto dependencies = program_.dependencies_of(id);
    return std::find(dependencies.begin(), dependencies.end(), on) != dependencies.end();
  }

  /// Draws the order of a lane between instructions that do not depend on each other.
  void write_lane_order() {
    for (const auto& [key, ids] : rows_) {
      if (key.second == kNoLane) continue;
      for (std::size_t at = 1; at < ids.size(); ++at)
        if (!depends(ids[at], ids[at - 1]))
          write_edge(ids[at - 1], ids[at], "color=gray60 penwidth=0.5");
    }
  }

  void write_dependencies(InstructionId id) {
    std::set<InstructionId> drawn;
    for (const InstructionId dependency : program_.dependencies_of(id)) {
      if (shown_[dependency] == Shown::kNothing) continue;
      const bool message = shown_[dependency] == Shown::kEdge;
      const InstructionId producer = message ? *find_producer(program_, dependency) : dependency;
      if (!drawn.insert(producer).second) continue;
      if (message)
        write_message(dependency, producer, id);
      else
        write_edge(producer, id,
                   is_after_edge(instruction(id), instruction(producer))
                       ? "color=gray20 penwidth=0.8 arrowhead=vee tooltip=\"after\""
                       : "color=gray20 penwidth=0.8");
    }
    const std::optional<InstructionId> before = before_in_path_[id];
    if (before && !drawn.contains(*before) && !is_lane_order(*before, id))
      write_edge(*before, id, "style=dotted tooltip=\"through a post\"");
  }

  bool is_lane_order(InstructionId from, InstructionId to) const {
    return row_key(from) == row_key(to) && row_neighbours(from, to);
  }

  void write_message(InstructionId message, InstructionId producer, InstructionId user) {
    const Nanos latency = timeline_.end[message] - timeline_.start[message];
    std::string attributes = "style=dashed color=gray20 penwidth=0.8";
    if (latency > 0)
      attributes +=
          fmt::format(" label=\"{}\" fontcolor=gray30 lp=\"{:.1f},{:.1f}\"", format_time(latency),
                      right(producer) + std::min(kTypicalBox, left(user) - right(producer)) / 2 +
                          kLatencyOffset,
                      0.6 * y(producer) + 0.4 * y(user));
    write_edge(producer, user, attributes);
  }

  void write_edge(InstructionId from, InstructionId to, std::string_view attributes) {
    print("  n{} -> n{} [{} pos=\"{}\"{}]\n", from, to, attributes, route(from, to),
          is_critical_edge(from, to) ? " color=red penwidth=2" : "");
  }

  std::string route(InstructionId from, InstructionId to) const {
    if (y(from) != y(to)) return route_between_rows(from, to);
    const double above = y(from) + kBoxHeight / 2;
    if (row_neighbours(from, to))
      return curve({right(from), y(from)}, {right(from), y(from)}, {right(from), y(to)},
                   {left(to), y(to)});
    const double arc = above + 12 + 5 * (instruction(from).op.microbatch % 4);
    return curve({right(from) - 5, above}, {right(from), arc}, {left(to), arc},
                 {left(to) + 5, above});
  }

  /// Edges run from side to side; an edge that spans a long time runs between the rows, so that it
  /// is not hidden by the boxes of the row where it ends.
  std::string route_between_rows(InstructionId from, InstructionId to) const {
    const double distance = left(to) - right(from);
    const CurvePoint begin{right(from), y(from)};
    if (distance < kTypicalBox) {
      const double bend = std::max(12.0, distance / 2);
      return curve(begin, {begin.x + bend, begin.y}, {left(to) - bend, y(to)}, {left(to), y(to)});
    }
    const double side = y(from) > y(to) ? 1 : -1;
    const double edge = y(to) + side * kBoxHeight / 2;
    const double gutter = edge + side * kGutter;
    return curve(begin, {begin.x + kGutter, gutter}, {left(to), gutter}, {left(to) + 5, edge});
  }

  bool row_neighbours(InstructionId from, InstructionId to) const {
    const std::vector<InstructionId>& row = rows_.at(row_key(from));
    const auto at = std::lower_bound(row.begin(), row.end(), from);
    return at + 1 != row.end() && *(at + 1) == to;
  }

  const StepRecord& record_;
  const Program& program_;
  const Timeline& timeline_;
  Palette palette_;
  std::vector<Shown> shown_;
  std::map<RowKey, std::vector<InstructionId>> rows_;
  std::map<RowKey, double> y_of_row_;
  std::set<InstructionId> critical_;
  std::vector<std::optional<InstructionId>> before_in_path_;
  Nanos origin_ = 0;
  Nanos typical_ = 1;
  fmt::memory_buffer out_;
};

}  // namespace

std::string write_dot(const StepRecord& record) { return DotGraph(record).write(); }

std::size_t count_dot_nodes(const Program& program) {
  const std::vector<Shown> shown = choose_shown(program);
  return static_cast<std::size_t>(std::count(shown.begin(), shown.end(), Shown::kBox));
}

}  // namespace bubblescope::traces
