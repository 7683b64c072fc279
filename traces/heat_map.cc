// The best schedule and its bubble over pipeline sizes and micro-batch counts.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "traces/palette.h"
#include "traces/plan_table.h"
#include "traces/svg_canvas.h"
#include "traces/wording.h"

namespace bubblescope {

namespace {

/// The best plan of every shape, and the letters of the schedules that occur.
struct HeatMap {
  std::vector<std::int32_t> ranks;
  std::vector<std::int32_t> microbatches;
  std::map<std::pair<std::int32_t, std::int32_t>, const Plan*> best;
  std::vector<std::string> schedules;  ///< in the order of their letters
  double worst = 0;

  const Plan* at(std::int32_t rank_count, std::int32_t microbatch_count) const {
    const auto found = best.find({rank_count, microbatch_count});
    return found == best.end() ? nullptr : found->second;
  }
  std::string letter(const Plan& plan) const {
    const auto found = std::find(schedules.begin(), schedules.end(), plan.configuration.schedule);
    const auto index = static_cast<std::size_t>(found - schedules.begin());
    const std::string alphabet = "abcdefghijklmnopqrstuvwxyz";
    return index < alphabet.size() ? alphabet.substr(index, 1) : "?";
  }
};

/// Of many values as many as fit, evenly chosen, both ends among them.
std::vector<std::int32_t> thinned(const std::set<std::int32_t>& values, std::size_t most) {
  const std::vector<std::int32_t> all(values.begin(), values.end());
  if (all.size() <= most) return all;
  std::vector<std::int32_t> some;
  for (std::size_t at = 0; at < most; ++at) some.push_back(all[at * (all.size() - 1) / (most - 1)]);
  return some;
}

HeatMap map_of(const std::vector<Plan>& ranked, std::size_t rows, std::size_t columns) {
  HeatMap map;
  std::set<std::int32_t> ranks;
  std::set<std::int32_t> microbatches;
  for (const Plan& plan : ranked) {
    const Shape& shape = plan.configuration.shape;
    ranks.insert(shape.ranks);
    microbatches.insert(shape.microbatches);
    map.best.emplace(std::pair(shape.ranks, shape.microbatches), &plan);
  }
  map.ranks = thinned(ranks, rows);
  map.microbatches = thinned(microbatches, columns);
  std::set<std::string> schedules;
  for (const std::int32_t rank_count : map.ranks)
    for (const std::int32_t count : map.microbatches)
      if (const Plan* plan = map.at(rank_count, count)) {
        schedules.insert(plan->configuration.schedule);
        map.worst = std::max(map.worst, plan->bubble_ratio);
      }
  map.schedules.assign(schedules.begin(), schedules.end());
  return map;
}

/// From white (no bubble) to a deep red (the worst of the map).
Rgb heat(double ratio, double worst) {
  constexpr Rgb kHottest{178, 24, 43};
  return lighten(kHottest, worst > 0 ? 1 - ratio / worst : 1);
}

/// The same in the 216-colour cube of terminals.
int terminal_heat(double ratio, double worst) {
  const auto level = [](std::uint8_t value) { return (value + 25) / 51; };
  const Rgb colour = heat(ratio, worst);
  return 16 + 36 * level(colour.red) + 6 * level(colour.green) + level(colour.blue);
}

std::string cell_text(const HeatMap& map, const Plan* plan) {
  if (plan == nullptr) return "-";
  return fmt::format("{} {:.1f}%", map.letter(*plan), 100 * plan->bubble_ratio);
}

std::string legend(const HeatMap& map, int width) {
  std::vector<std::string> entries;
  for (std::size_t at = 0; at < map.schedules.size() && at < 26; ++at)
    entries.push_back(fmt::format("{:c} {}", 'a' + static_cast<int>(at), map.schedules[at]));
  return wrap(entries, "", "  ", width);
}

}  // namespace

std::string write_heat_map_text(const std::vector<Plan>& ranked, const PlanTextOptions& options) {
  constexpr int kCell = 9;
  const auto columns = static_cast<std::size_t>(std::max(2, (options.width - 9) / kCell));
  const HeatMap map = map_of(ranked, 16, columns);
  if (map.best.size() < 2) return "";
  std::string text = "bubble of the best schedule at each shape\n";
  text += fmt::format("{:<8}", "pp \\ m");
  for (const std::int32_t count : map.microbatches) text += fmt::format("{:>{}}", count, kCell);
  for (const std::int32_t rank_count : map.ranks) {
    text += fmt::format("\n{:<8}", rank_count);
    for (const std::int32_t count : map.microbatches) {
      const Plan* plan = map.at(rank_count, count);
      const std::string cell = fmt::format("{:>{}}", cell_text(map, plan), kCell);
      if (!options.colour || plan == nullptr) {
        text += cell;
        continue;
      }
      const bool light_ink = ink_on(heat(plan->bubble_ratio, map.worst)).red > 127;
      text += fmt::format("\x1b[48;5;{};38;5;{}m{}\x1b[0m",
                          terminal_heat(plan->bubble_ratio, map.worst), light_ink ? 231 : 16, cell);
    }
  }
  return text + "\n" + legend(map, options.width);
}

namespace {

constexpr double kCellWidth = 84;
constexpr double kCellHeight = 34;

/// The cell whose upper left corner is here, with its plan in words where a pointer rests on it.
void draw_cell(SvgCanvas& canvas, const HeatMap& map, const Plan& plan, double x, double y) {
  const Configuration& which = plan.configuration;
  const Rgb colour = heat(plan.bubble_ratio, map.worst);
  canvas.begin_group(fmt::format("{}: pp {}, m {}, {}, bubble {}", which.schedule,
                                 which.shape.ranks, which.shape.microbatches, to_text(plan.step),
                                 percent_text(plan.bubble_ratio)));
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
  canvas.text({12, 20}, "class=\"title\"", "bubble of the best schedule at each shape");
  canvas.text({12, kTop - 10}, "class=\"note\"", "pp \\ m");
  for (std::size_t column = 0; column < map.microbatches.size(); ++column)
    canvas.text({column_at(column) + kCellWidth / 2, kTop - 10}, "class=\"axis\"",
                std::to_string(map.microbatches[column]));
  double y = kTop;
  for (const std::int32_t rank_count : map.ranks) {
    canvas.text({kLeft - 24, y + kCellHeight / 2 + 4}, "class=\"axis\"",
                std::to_string(rank_count));
    for (std::size_t column = 0; column < map.microbatches.size(); ++column)
      if (const Plan* plan = map.at(rank_count, map.microbatches[column]))
        draw_cell(canvas, map, *plan, column_at(column), y);
    y += kCellHeight;
  }
  double below = y + 20;
  for (std::size_t at = 0; at < map.schedules.size() && at < 26; ++at, below += 16)
    canvas.text({12, below}, "class=\"note\"",
                fmt::format("{:c}  {}", 'a' + static_cast<int>(at), map.schedules[at]));
  return canvas.finish(std::max(320.0, column_at(map.microbatches.size()) + 12), below + 4,
                       "text { font: 12px sans-serif; } .title { font-weight: bold; }\n"
                       ".axis { text-anchor: middle; } .note { fill: #444; }\n");
}

}  // namespace bubblescope
