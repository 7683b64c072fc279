// Picks workers and groups steps.
#include "traces/reports/worker_map_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "traces/text/wording.h"

namespace bubblescope::traces {

namespace {

/// The limits of the signs, as S - 1.
constexpr double kClear = 0.1;
constexpr double kLarge = 0.25;

/// Returns the worker's S in every column.
std::vector<double> find_row(const SlowdownReport& slowdown, std::size_t worker,
                             std::size_t steps_per_column) {
  std::vector<double> row;
  for (std::size_t step = 0; step < slowdown.by_step.size(); ++step) {
    const double value = slowdown.by_step[step][worker];
    if (step % steps_per_column == 0)
      row.push_back(value);
    else
      row.back() = std::max(row.back(), value);
  }
  return row;
}

char sign_of(double slowdown) {
  if (slowdown < WorkerMap::kNoticedSlowdown) return '.';
  if (slowdown < 1 + kClear) return '+';
  return slowdown < 1 + kLarge ? '*' : '#';
}

std::string describe_columns(const std::vector<WorkerMapColumn>& columns) {
  const bool share = columns.front().first != columns.front().last;
  return fmt::format("how much longer each makes a step, a column per {} from {} to {}",
                     share ? "few steps (the longest counts)" : "step", columns.front().first,
                     columns.back().last);
}

}  // namespace

WorkerMap make_worker_map(const SlowdownReport& slowdown, const std::vector<std::int64_t>& steps,
                          const WorkerMapSize& max_size) {
  WorkerMap map;
  if (slowdown.by_step.size() < 2 || steps.size() != slowdown.by_step.size()) return map;
  const std::size_t per_column = (steps.size() + max_size.columns - 1) / max_size.columns;
  for (std::size_t first = 0; first < steps.size(); first += per_column)
    map.columns.push_back({steps[first], steps[std::min(first + per_column, steps.size()) - 1]});
  std::vector<std::size_t> order(slowdown.by_worker.size());
  for (std::size_t at = 0; at < order.size(); ++at) order[at] = at;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t left, std::size_t right) {
    return slowdown.by_worker[left].slowdown > slowdown.by_worker[right].slowdown;
  });
  const bool has_replicas = slowdown.by_worker.front().replica != slowdown.by_worker.back().replica;
  for (const std::size_t worker : order) {
    const WorkerSlowdown& own = slowdown.by_worker[worker];
    std::vector<double> row = find_row(slowdown, worker, per_column);
    if (*std::max_element(row.begin(), row.end()) < WorkerMap::kNoticedSlowdown)
      ++map.unnoticed;
    else if (map.rows.size() == max_size.rows)
      ++map.cut;
    else
      map.rows.push_back({name_worker({own.replica, own.rank}, has_replicas), std::move(row)});
  }
  return map;
}

std::string write_worker_map_text(const WorkerMap& map) {
  if (map.rows.empty()) return {};
  std::size_t width = 0;
  for (const WorkerMapRow& row : map.rows) width = std::max(width, row.worker.size());
  std::string text = "workers:  " + describe_columns(map.columns) + "\n";
  for (const WorkerMapRow& row : map.rows) {
    text += fmt::format("          {:<{}}  ", row.worker, width);
    for (const double slowdown : row.slowdowns) text += sign_of(slowdown);
    text += "\n";
  }
  text += "          . under 2 %  + under 10 %  * under 25 %  # from 25 %\n";
  if (map.cut > 0)
    text += fmt::format("          ({} are slow at times, too, but less)\n",
                        counted(static_cast<std::int64_t>(map.cut), "other worker"));
  return text;
}

}  // namespace bubblescope::traces
