// Draws the best plan over two axes, coloured by how much slower it is than the best of all.
#include "traces/plans/heat_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "traces/drawings/svg_canvas.h"
#include "traces/text/palette.h"
#include "traces/text/wording.h"

namespace bubblescope::traces {

namespace {

/// A number in which plans differ.
struct MapAxis {
  std::string_view name;
  std::int32_t (*of)(const Configuration&);
};

constexpr MapAxis kPipeline{"pp", [](const Configuration& which) { return which.shape.ranks; }};
constexpr MapAxis kMicrobatches{
    "m", [](const Configuration& which) { return which.shape.microbatches; }};
constexpr MapAxis kTensor{"tp", [](const Configuration& which) { return which.tensor; }};
constexpr MapAxis kSize{"mbs", [](const Configuration& which) { return which.micro_batch_size; }};
constexpr MapAxis kChunks{"vpp", [](const Configuration& which) { return which.shape.chunks; }};
constexpr MapAxis kContext{"cp", [](const Configuration& which) { return which.context; }};
constexpr MapAxis kExpert{"ep", [](const Configuration& which) { return which.expert; }};

std::set<std::int32_t> values_on(const MapAxis& axis, const std::vector<Plan>& plans) {
  std::set<std::int32_t> values;
  for (const Plan& plan : plans) values.insert(axis.of(plan.configuration));
  return values;
}

/// Returns the first axis on which plans differ, other than `taken`; else the first other than it.
MapAxis free_axis(std::vector<MapAxis> axes, const std::vector<Plan>& plans,
                  std::string_view taken) {
  std::erase_if(axes, [&](const MapAxis& axis) { return axis.name == taken; });
  for (const MapAxis& axis : axes)
    if (values_on(axis, plans).size() > 1) return axis;
  return axes.front();
}

/// The best plan of every shape on two axes, and the letters of the schedules that occur.
struct HeatMap {
  MapAxis row_axis = kPipeline;
  MapAxis column_axis = kMicrobatches;
  std::vector<std::int32_t> rows;
  std::vector<std::int32_t> columns;
  std::map<std::pair<std::int32_t, std::int32_t>, const Plan*> best;
  std::vector<std::string> schedules;  ///< in the order of their letters
  double fastest = 1;                  ///< nanoseconds per sample
  double worst = 0;                    ///< the largest slowdown()

  const Plan* at(std::int32_t row, std::int32_t column) const {
    const auto found = best.find({row, column});
    return found == best.end() ? nullptr : found->second;
  }
  /// Returns 0 for the best plan of all, and 1 for a plan that takes twice its time.
  double slowdown(const Plan& plan) const { return plan.nanos_per_sample() / fastest - 1; }
  std::string letter(const Plan& plan) const {
    const auto found = std::find(schedules.begin(), schedules.end(), plan.configuration.schedule);
    const auto index = static_cast<std::size_t>(found - schedules.begin());
    const std::string alphabet = "abcdefghijklmnopqrstuvwxyz";
    return index < alphabet.size() ? alphabet.substr(index, 1) : "?";
  }
  bool is_modelled() const { return !best.empty() && best.begin()->second->mfu.has_value(); }
  std::string title(bool is_shaded) const {
    return is_modelled() ? std::string("MFU of the best plan at each shape") +
                               (is_shaded ? "; darker is slower" : "")
                         : "time per sample above the best's, of the best plan at each shape";
  }
  std::string corner() const { return fmt::format("{} \\ {}", row_axis.name, column_axis.name); }
};

/// Picks at most `max_count` values, evenly spread, including both ends.
std::vector<std::int32_t> pick_evenly(const std::set<std::int32_t>& values, std::size_t max_count) {
  const std::vector<std::int32_t> all(values.begin(), values.end());
  if (all.size() <= max_count) return all;
  std::vector<std::int32_t> some;
  for (std::size_t at = 0; at < max_count; ++at)
    some.push_back(all[at * (all.size() - 1) / (max_count - 1)]);
  return some;
}

HeatMap map_of(const std::vector<Plan>& ranked, std::size_t rows, std::size_t columns) {
  HeatMap map;
  if (ranked.empty()) return map;
  const bool modelled = ranked.front().mfu.has_value();
  map.row_axis = free_axis({kPipeline, kTensor, kChunks, kSize}, ranked, "");
  map.column_axis =
      modelled ? free_axis({kTensor, kSize, kChunks, kContext, kExpert}, ranked, map.row_axis.name)
               : free_axis({kMicrobatches, kChunks}, ranked, map.row_axis.name);
  map.fastest = ranked.front().nanos_per_sample();
  for (const Plan& plan : ranked)
    map.best.emplace(
        std::pair(map.row_axis.of(plan.configuration), map.column_axis.of(plan.configuration)),
        &plan);
  map.rows = pick_evenly(values_on(map.row_axis, ranked), rows);
  map.columns = pick_evenly(values_on(map.column_axis, ranked), columns);
  std::set<std::string> schedules;
  for (const std::int32_t row : map.rows)
    for (const std::int32_t column : map.columns)
      if (const Plan* plan = map.at(row, column)) {
        schedules.insert(plan->configuration.schedule);
        map.worst = std::max(map.worst, map.slowdown(*plan));
      }
  map.schedules.assign(schedules.begin(), schedules.end());
  return map;
}

/// Returns a colour between white (as fast as the best) and a deep red (the slowest of the map).
Rgb choose_heat_colour(double slowdown, double worst) {
  constexpr Rgb kSlowestColour{178, 24, 43};
  return lighten(kSlowestColour, worst > 0 ? 1 - slowdown / worst : 1);
}

/// Returns the same colour in the 216-colour cube of terminals.
int choose_terminal_colour(double slowdown, double worst) {
  const auto level = [](std::uint8_t value) { return (value + 25) / 51; };
  const Rgb colour = choose_heat_colour(slowdown, worst);
  return 16 + 36 * level(colour.red) + 6 * level(colour.green) + level(colour.blue);
}

std::string cell_text(const HeatMap& map, const Plan* plan) {
  if (plan == nullptr) return "-";
  if (plan->mfu) return fmt::format("{} {:.1f}%", map.letter(*plan), 100 * *plan->mfu);
  const double slowdown = 100 * map.slowdown(*plan);
  return slowdown < 1000 ? fmt::format("{} +{:.1f}%", map.letter(*plan), slowdown)
                         : fmt::format("{} x{:.0f}", map.letter(*plan), 1 + slowdown / 100);
}

std::string legend(const HeatMap& map, int width) {
  std::vector<std::string> entries;
  for (std::size_t at = 0; at < map.schedules.size() && at < 26; ++at)
    entries.push_back(fmt::format("{:c} {}", 'a' + static_cast<int>(at), map.schedules[at]));
  return wrap(entries, "", "  ", width);
}

}  // namespace

std::string write_heat_map_text(const std::vector<Plan>& ranked, const PlanTextOptions& options) {
  constexpr int kCell = 10;
  const auto columns = static_cast<std::size_t>(std::max(2, (options.width - 10) / kCell));
  const HeatMap map = map_of(ranked, 16, columns);
  if (map.best.size() < 2) return "";
  std::string text = map.title(options.colour) + "\n";
  text += fmt::format("{:<9}", map.corner());
  for (const std::int32_t count : map.columns) text += fmt::format("{:>{}}", count, kCell);
  for (const std::int32_t row : map.rows) {
    text += fmt::format("\n{:<9}", row);
    for (const std::int32_t count : map.columns) {
      const Plan* plan = map.at(row, count);
      const std::string cell = fmt::format("{:>{}}", cell_text(map, plan), kCell);
      if (!options.colour || plan == nullptr) {
        text += cell;
        continue;
      }
      const bool light_ink = ink_on(choose_heat_colour(map.slowdown(*plan), map.worst)).red > 127;
      text += fmt::format("\x1b[48;5;{};38;5;{}m{}\x1b[0m",
                          choose_terminal_colour(map.slowdown(*plan), map.worst),
                          light_ink ? 231 : 16, cell);
    }
  }
  return text + "\n" + legend(map, options.width);
}

namespace {

constexpr double kCellWidth = 84;
constexpr double kCellHeight = 34;

/// Draws the cell with this upper left corner, and its plan in words as a tooltip.
void draw_cell(SvgCanvas& canvas, const HeatMap& map, const Plan& plan, double x, double y) {
  const Configuration& which = plan.configuration;
  const Rgb colour = choose_heat_colour(map.slowdown(plan), map.worst);
  canvas.begin_group(fmt::format("{}: pp {}, m {}, {}, bubble {}", which.schedule,
                                 which.shape.ranks, which.shape.microbatches, to_text(plan.step),
                                 format_percent(plan.bubble_ratio)));
  canvas.rect({x, y, kCellWidth - 1, kCellHeight - 1}, fmt::format("fill=\"{}\"", hex(colour)));
  canvas.text({x + kCellWidth / 2, y + kCellHeight / 2 + 4},
              fmt::format("class=\"axis\" fill=\"{}\"", hex(ink_on(colour))),
              cell_text(map, &plan));
  canvas.end_group();
}

}  // namespace

std::string write_heat_map_svg(const std::vector<Plan>& ranked) {
  constexpr double kLeft = 64;
  constexpr double kTop = 56;
  const HeatMap map = map_of(ranked, 32, 24);
  const auto column_at = [](std::size_t column) {
    return kLeft + static_cast<double>(column) * kCellWidth;
  };
  SvgCanvas canvas;
  canvas.text({12, 20}, "class=\"title\"", map.title(true));
  canvas.text({12, kTop - 10}, "class=\"note\"", map.corner());
  for (std::size_t column = 0; column < map.columns.size(); ++column)
    canvas.text({column_at(column) + kCellWidth / 2, kTop - 10}, "class=\"axis\"",
                std::to_string(map.columns[column]));
  double y = kTop;
  for (const std::int32_t row : map.rows) {
    canvas.text({kLeft - 24, y + kCellHeight / 2 + 4}, "class=\"axis\"", std::to_string(row));
    for (std::size_t column = 0; column < map.columns.size(); ++column)
      if (const Plan* plan = map.at(row, map.columns[column]))
        draw_cell(canvas, map, *plan, column_at(column), y);
    y += kCellHeight;
  }
  double below = y + 20;
  for (std::size_t at = 0; at < map.schedules.size() && at < 26; ++at, below += 16)
    canvas.text({12, below}, "class=\"note\"",
                fmt::format("{:c}  {}", 'a' + static_cast<int>(at), map.schedules[at]));
  return canvas.finish(std::max(320.0, column_at(map.columns.size()) + 12), below + 4,
                       "text { font: 12px sans-serif; } .title { font-weight: bold; }\n"
                       ".axis { text-anchor: middle; } .note { fill: #444; }\n");
}

}  // namespace bubblescope::traces
