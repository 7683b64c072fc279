// Reads and writes the text form.
#include "traces/schedules/text_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "sim/ir/after_edges.h"
#include "sim/ir/error.h"
#include "traces/files/format.h"
#include "traces/files/quote.h"
#include "traces/schedules/cell.h"
#include "traces/schedules/infer_schedule.h"

namespace bubblescope::traces {

namespace {

constexpr std::string_view kBlanks = " \t\r\v\f";

std::string place_of(const std::string& file, std::size_t rank, std::size_t position) {
  return fmt::format("{}: rank {}, position {}", file, rank, position);
}

/// Removes the front of the text, up to and including `separator`, and returns what came before the
/// separator.
std::string_view take_until(std::string_view& text, char separator) {
  const std::string_view front = text.substr(0, text.find(separator));
  text.remove_prefix(std::min(text.size(), front.size() + 1));
  return front;
}

RankOrder parse_rank(std::string_view text, const std::string& file, std::size_t rank) {
  RankOrder ops;
  std::size_t cells = 0;
  for (std::size_t begin = text.find_first_not_of(kBlanks); begin != text.npos;
       begin = text.find_first_not_of(kBlanks, begin)) {
    const std::size_t end = std::min(text.find_first_of(kBlanks, begin), text.size());
    const std::string_view token = text.substr(begin, end - begin);
    const Cell cell = parse_cell(token, CellGrammar::kOwn);
    if (!cell.sound())
      throw Error(fmt::format("{}: {} {}", place_of(file, rank, cells), quote(token), cell.fault));
    ops.insert(ops.end(), cell.ops.begin(),
               cell.ops.begin() + static_cast<std::ptrdiff_t>(cell.count));
    begin = end;
    ++cells;
  }
  if (ops.empty())
    throw Error(
        fmt::format("{}: rank {} has no ops; write _ for a rank that stays idle", file, rank));
  return ops;
}

bool recognize_text(std::string_view text) {
  return !text.starts_with('{') && !text.starts_with('[') && !text.empty();
}

const Registrar<ScheduleFormat> text_registrar{[] {
  return ScheduleFormat{"text",
                        {"txt"},
                        "one line per rank, ops with blanks between them",
                        write_schedule_text,
                        [](std::string_view text, const std::string& file) {
                          return parse_schedule_text(text, file);
                        },
                        recognize_text};
}};

}  // namespace

Schedule parse_schedule_text(std::string_view text, const std::string& file) {
  std::vector<RankOrder> lists;
  while (!text.empty()) {
    const std::string_view whole_line = take_until(text, '\n');
    std::string_view line = strip(whole_line.substr(0, whole_line.find('#')));
    if (line.empty()) continue;
    for (bool more = true; more;) {
      more = line.find('|') != line.npos;
      lists.push_back(parse_rank(take_until(line, '|'), file, lists.size()));
    }
  }
  if (lists.empty()) throw Error(fmt::format("{} has no ops; write one line per rank", file));
  return infer_schedule(std::filesystem::path(file).stem().string(), std::move(lists),
                        [&](std::int32_t rank, std::size_t cell) {
                          return place_of(file, static_cast<std::size_t>(rank), cell);
                        });
}

std::string write_schedule_text(const Schedule& schedule) {
  refuse_after_edges(schedule, "the text form");
  refuse_graph(schedule, "the text form");
  if (schedule.is_data_parallel())
    throw Error("the text form cannot express how replicas of a pipeline take turns, as those of " +
                schedule.name + " do; write it as native");
  std::string out;
  for (const RankOrder& list : get_lists(schedule)) {
    if (list.empty()) out += '_';
    for (std::size_t at = 0; at < list.size();) {
      if (at > 0) out += ' ';
      at = append_cell(out, list, at, CellGrammar::kOwn);
    }
    out += '\n';
  }
  return out;
}

}  // namespace bubblescope::traces
