// Summarizes the critical path: which ranks are on it, and for how long.
#include "traces/reports/path_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "sim/analysis/critical_path.h"
#include "sim/analysis/pair_times.h"
#include "sim/ir/counted.h"
#include "traces/text/palette.h"
#include "traces/text/time_axis.h"
#include "traces/text/wording.h"

namespace bubblescope::traces {

namespace {

/// The number of entries shown at each end of a long path.
constexpr std::size_t kShownEnds = 4;

/// Consecutive ops on one rank.
struct Segment {
  std::int32_t rank = 0;
  std::vector<InstructionId> ops;
  Nanos time = 0;
};

/// The time on the path by kind of op and by rank.
struct PathSummary {
  std::vector<Segment> segments;
  std::int64_t ops = 0;
  std::map<OpKind, Nanos> by_letter;  ///< keyed by the first kind of those that share a letter
  std::map<std::int32_t, Nanos> by_rank;
  Nanos messages = 0;
  Nanos waiting = 0;
  Nanos makespan = 0;  ///< of the step, which the path fills
};

/// Adds the time of a part of the path to the kinds that it counts to.
void add_by_letter(const StepRecord& record, const std::optional<PairTimes>& pairs,
                   const PathPart& part, std::map<OpKind, Nanos>& by_letter) {
  const OpKind kind = record.program.instructions[part.id].op.kind;
  if (!pairs || !pairs->covers(part.id)) {
    by_letter[is_collective(kind) ? OpKind::kUnshard : kind] += part.time;
    return;
  }
  const Nanos end = record.timeline.end[part.id];
  for (const KindTime& share : pairs->divide(part.id, end - part.time, end))
    by_letter[share.kind] += share.time;
}

PathSummary summarize(const StepRecord& record) {
  PathSummary summary;
  std::optional<PairTimes> pairs;
  if (record.report.parts) pairs.emplace(record.program, record.timeline, *record.report.parts);
  for (const PathPart& part : measure_path(record.report.critical_path, record.timeline)) {
    const Instruction& instruction = record.program.instructions[part.id];
    summary.waiting += part.gap;
    summary.makespan += part.gap + part.time;
    if (is_message(instruction)) {
      summary.messages += part.time;
      continue;
    }
    if (summary.segments.empty() || summary.segments.back().rank != instruction.rank)
      summary.segments.push_back({instruction.rank, {}, 0});
    summary.segments.back().ops.push_back(part.id);
    summary.segments.back().time += part.time;
    add_by_letter(record, pairs, part, summary.by_letter);
    summary.by_rank[instruction.rank] += part.time;
    ++summary.ops;
  }
  return summary;
}

/// The heading of the path. If the report is the mean of several steps, the path is that of the
/// drawn step, whose makespan differs from the mean.
std::string title(const StepRecord& record, Nanos makespan) {
  if (makespan == record.report.makespan) return "critical path";
  return fmt::format("critical path of the drawn step, {}", format_time(makespan));
}

std::vector<std::string> headline(const std::string& title, const PathSummary& summary) {
  const auto hops = static_cast<std::int64_t>(summary.segments.size()) - 1;
  std::vector<std::string> entries{
      fmt::format("{}: {}, {}:", title, counted(summary.ops, "op"), counted(hops, "hop"))};
  for (const auto& [kind, time] : summary.by_letter)
    if (time > 0) entries.push_back(fmt::format("{} {}", letter(kind), format_time(time)));
  entries.push_back("messages " + format_time(summary.messages));
  if (summary.waiting > 0) entries.push_back("waiting " + format_time(summary.waiting));
  const auto longest = std::max_element(
      summary.by_rank.begin(), summary.by_rank.end(),
      [](const auto& left, const auto& right) { return left.second < right.second; });
  entries.push_back(
      fmt::format("most on rank {}: {}", longest->first, format_time(longest->second)));
  return entries;
}

std::string segment_text(const Program& program, const Segment& segment) {
  const auto name = [&](InstructionId id) { return to_string(program.instructions[id].op); };
  const std::string first = name(segment.ops.front());
  if (segment.ops.size() == 1) return first;
  const std::string last = name(segment.ops.back());
  if (segment.ops.size() == 2) return first + " " + last;
  return fmt::format("{} … {} ({}, {})", first, last, counted(segment.ops.size(), "op"),
                     format_time(segment.time));
}

/// The entries of the second line. The middle of a long path is left out.
std::vector<std::string> entries_of(const Program& program, const std::vector<Segment>& segments) {
  std::vector<std::string> entries;
  const std::size_t left_out =
      segments.size() > 2 * kShownEnds + 1 ? segments.size() - 2 * kShownEnds : 0;
  for (std::size_t at = 0; at < segments.size(); ++at) {
    if (left_out > 0 && at == kShownEnds) {
      entries.push_back(fmt::format("… {} more …", left_out));
      at += left_out;
    }
    entries.push_back(segment_text(program, segments[at]));
  }
  return entries;
}

}  // namespace

std::string write_path_text(const StepRecord& record, int width) {
  const PathSummary summary = summarize(record);
  if (summary.segments.empty()) return {};
  return wrap(headline(title(record, summary.makespan), summary), "", "  ", width) +
         wrap(entries_of(record.program, summary.segments), "  ", " → ", width);
}

}  // namespace bubblescope::traces
