// Writes a timed step as csv: one row per instruction in the Program's order, so that each row
// follows its dependencies.
//
//   rank,lane,op,kind,stage,microbatch,start_ns,end_ns,slack_ns,critical,rank_rows
//   0,compute,0F0,F,0,0,0,1000000,0,1,2
//   0,,0SEND_F0,SEND_F,0,0,1000000,1100000,0,1,2
//
// lane is blank for a message that occupies no lane. critical is 1 on the critical path. critical
// and slack_ns are blank if the report has no conclusions. Ranks without a trace have no rows.
// rank_rows is the number of rows of the same rank, so that a file that lacks some shows it.
#include <fmt/compile.h>
#include <fmt/format.h>

#include <cstddef>
#include <iterator>
#include <vector>

#include "sim/analysis/conclusions.h"
#include "traces/files/format.h"

namespace bubblescope::traces {

namespace {

bool is_recorded(const BubbleReport& report, std::int32_t rank) {
  const auto at = static_cast<std::size_t>(rank);
  return at >= report.ranks.size() || report.ranks[at].is_recorded;
}

/// The number of rows of each rank.
std::vector<std::size_t> count_rows(const Program& program) {
  std::vector<std::size_t> rows(static_cast<std::size_t>(program.ranks), 0);
  for (const Instruction& one : program.instructions) ++rows[static_cast<std::size_t>(one.rank)];
  return rows;
}

std::string write_timeline_csv(const StepRecord& record, const std::string&) {
  const Program& program = record.program;
  const BubbleReport& report = record.report;
  std::vector<char> critical(program.instructions.size(), '0');
  for (const InstructionId id : report.critical_path) critical[id] = '1';
  const bool has_slack =
      is_conclusive(report) && report.slack.size() == program.instructions.size();
  fmt::memory_buffer out;
  out.reserve(64 * program.instructions.size());
  const auto end = std::back_inserter(out);
  fmt::format_to(
      end, "rank,lane,op,kind,stage,microbatch,start_ns,end_ns,slack_ns,critical,rank_rows\n");
  const std::vector<std::size_t> rows = count_rows(program);
  for (InstructionId id = 0; id < program.size(); ++id) {
    const Instruction& instruction = program.instructions[id];
    if (!is_recorded(report, instruction.rank)) continue;
    const Op& op = instruction.op;
    const std::string_view lane =
        instruction.lane == kNoLane ? "" : std::string_view(program.lanes[instruction.lane].name);
    fmt::format_to(end, FMT_COMPILE("{},{},{},{},{},{},{},{},"), instruction.rank, lane,
                   to_string(instruction), is_arrival(instruction) ? "ARRIVE" : code(op.kind),
                   op.stage, op.microbatch, record.timeline.start[id], record.timeline.end[id]);
    if (has_slack) fmt::format_to(end, FMT_COMPILE("{}"), report.slack[id]);
    out.push_back(',');
    if (is_conclusive(report)) out.push_back(critical[id]);
    fmt::format_to(end, FMT_COMPILE(",{}\n"), rows[static_cast<std::size_t>(instruction.rank)]);
  }
  return fmt::to_string(out);
}

const Registrar<TimelineFormat> timeline_csv_registrar{[] {
  return TimelineFormat{"timeline",
                        {"csv"},
                        "one csv row per instruction: when, where, slack",
                        write_timeline_csv,
                        {".csv"}};
}};

}  // namespace

}  // namespace bubblescope::traces
