// Draws a schedule as a grid with its problems marked.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "traces/drawings/drawing.h"
#include "traces/text/shown_ranks.h"
#include "traces/text/wording.h"

namespace bubblescope::traces {

namespace {

constexpr std::size_t kShownProblems = 20;
constexpr int kEllipsis = 2;    ///< columns of "… "
constexpr int kWholeRank = -1;  ///< the position of a problem that has none
constexpr int kNeighbours = 1;  ///< ranks shown around one with a problem, where not all fit

class Grid {
 public:
  Grid(const Schedule& schedule, const Problems& problems, const DrawOptions& options)
      : rows_(schedule.posted.empty() ? schedule.order : schedule.posted), options_(options) {
    for (const Problem& problem : problems)
      if (problem.rank) marked_[*problem.rank].insert(problem.position.value_or(kWholeRank));
    for (const RankOrder& cells : rows_)
      for (const Op& cell : cells)
        cell_width_ = std::max(cell_width_, static_cast<int>(to_string(cell).size()) + 2);
    label_width_ = static_cast<int>(fmt::formatted_size("rank {}  ", rows_.size() - 1));
    cells_shown_ =
        std::max(1, (std::max(options.width, 40) - label_width_ - 2 * kEllipsis) / cell_width_);
  }

  std::string draw() const {
    std::string text;
    std::int32_t previous = -1;
    for (const std::int32_t rank : ranks()) {
      if (rank != previous + 1) text += "  ⋮\n";
      text += row(rank);
      previous = rank;
    }
    if (previous + 1 != rank_count()) text += "  ⋮\n";
    return text;
  }

 private:
  std::int32_t rank_count() const { return static_cast<std::int32_t>(rows_.size()); }

  /// Returns all ranks, or those with problems and their neighbours.
  std::set<std::int32_t> ranks() const {
    std::set<std::int32_t> shown;
    const bool all = options_.all_ranks || rank_count() <= kShownRanks || marked_.empty();
    for (std::int32_t rank = 0; rank < rank_count(); ++rank) {
      const auto near = marked_.lower_bound(rank - kNeighbours);
      const bool beside = near != marked_.end() && near->first <= rank + kNeighbours;
      const auto shown_count = static_cast<std::int32_t>(shown.size());
      if (options_.all_ranks || ((all || beside) && shown_count < kShownRanks)) shown.insert(rank);
    }
    return shown;
  }

  bool is_marked(std::int32_t rank, int position) const {
    const auto marks = marked_.find(rank);
    return marks != marked_.end() && marks->second.contains(position);
  }

  /// The first cell of a row's window, whose middle is the row's own first problem, else the first
  /// problem of all.
  int window_begin(std::int32_t rank) const {
    const auto own = marked_.find(rank);
    const auto marks = own == marked_.end() ? marked_.begin() : own;
    if (marks == marked_.end()) return 0;
    const auto cells = static_cast<int>(rows_[static_cast<std::size_t>(rank)].size());
    const auto first = marks->second.lower_bound(0);
    const int culprit = first == marks->second.end() ? 0 : *first;
    return std::clamp(culprit - cells_shown_ / 2, 0, std::max(0, cells - cells_shown_));
  }

  std::string row(std::int32_t rank) const {
    const RankOrder& cells = rows_[static_cast<std::size_t>(rank)];
    const auto count = static_cast<int>(cells.size());
    const int begin = window_begin(rank);
    const int end = std::min(begin + cells_shown_, count);
    const char* mark = is_marked(rank, kWholeRank) ? "!" : "";
    std::string text = fmt::format("{:<{}}", fmt::format("rank {}{}", rank, mark), label_width_);
    text += begin > 0 ? "… " : "";
    for (int at = begin; at < end; ++at) {
      const std::string op = to_string(cells[static_cast<std::size_t>(at)]);
      const std::string cell = is_marked(rank, at) ? ">" + op + "<" : " " + op;
      text += fmt::format("{:<{}}", cell, cell_width_);
    }
    if (end < count) return text + "…\n";
    text.erase(text.find_last_not_of(' ') + 1);
    return text + "\n";
  }

  const std::vector<RankOrder>& rows_;
  const DrawOptions& options_;
  std::map<std::int32_t, std::set<int>> marked_;  ///< positions by rank; -1: the rank as a whole
  int cell_width_ = 4;
  int label_width_ = 0;
  int cells_shown_ = 0;
};

std::string problem_text(const Problem& problem) {
  std::string where;
  if (problem.rank) where += fmt::format("rank {}", *problem.rank);
  if (problem.position) where += fmt::format(", position {}", *problem.position);
  return (where.empty() ? "" : where + ": ") + to_string(problem) + "\n";
}

}  // namespace

std::string draw_grid(const Schedule& schedule, const Problems& problems,
                      const DrawOptions& options) {
  std::string text = Grid(schedule, problems, options).draw();
  if (!problems.empty()) text += "\n";
  for (std::size_t at = 0; at < std::min(problems.size(), kShownProblems); ++at)
    text += problem_text(problems[at]);
  if (problems.size() > kShownProblems)
    text += fmt::format(
        "and {}\n",
        counted(static_cast<std::int64_t>(problems.size() - kShownProblems), "further problem"));
  return text;
}

}  // namespace bubblescope::traces
