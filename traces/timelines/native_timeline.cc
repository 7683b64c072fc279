// Reads and writes the native timeline file.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/ir/counted.h"
#include "sim/ir/number.h"
#include "sim/ir/range.h"
#include "traces/files/format.h"
#include "traces/files/quote.h"
#include "traces/files/trace_format.h"
#include "traces/schedules/cell.h"
#include "traces/schedules/native_json.h"
#include "traces/timelines/impossible_lanes.h"
#include "traces/timelines/job_summary_json.h"
#include "traces/timelines/step_facts_json.h"
#include "traces/timelines/timeline_file.h"

namespace bubblescope::traces {

namespace {

constexpr const char* kFormat = "bubblescope-timeline/1";
constexpr std::array<const char*, 7> kColumns{"rank", "op",   "start_ns", "end_ns",
                                              "lane", "peer", "waits_for"};

/// Builds Program and Timeline row by row and keeps their invariants.
class RowReader {
 public:
  explicit RowReader(TimelineFile& file)
      : program_(file.program),
        timeline_(file.timeline),
        schedule_(file.schedule),
        next_(file.schedule->order.size()) {}

  void read(const JsonNode& row) {
    if (row.size() != kColumns.size() && row.size() != kColumns.size() + 1)
      row.refuse(fmt::format("has {}; give rank, op, start, end, lane, peer, waits_for",
                             counted(row.size(), "entry")));
    Instruction instruction;
    instruction.rank = row[0].integer32(0, program_.ranks - 1);
    instruction.op = read_op(row[1]);
    timeline_.start.push_back(row[2].integer(-kMaxNanos, kMaxNanos));
    timeline_.end.push_back(row[3].integer(-kMaxNanos, kMaxNanos));
    if (timeline_.end.back() < timeline_.start.back()) row.refuse("ends before it starts");
    instruction.lane = read_lane(row[4], instruction.rank);
    instruction.peer = row[5].integer32(0, program_.ranks - 1);
    if (occurs_in_order(instruction.op.kind)) match_order(row, instruction);
    read_waits(row[6]);
    if (row.size() > kColumns.size()) instruction.role = read_role(row[kColumns.size()]);
    program_.instructions.push_back(instruction);
  }

  static Role read_role(const JsonNode& node) {
    if (node.text() == "post") return Role::kPost;
    if (node.text() == "wait") return Role::kWait;
    node.refuse("must be 'post' or 'wait'");
  }

  /// Throws Error unless every op of the schedule had a row.
  void finish(const JsonNode& rows) {
    for (std::size_t rank = 0; rank < next_.size(); ++rank)
      for (const Queue queue : {kCompute, kEvict, kLoad})
        if (const Op* const missing = advance(rank, queue))
          rows.refuse(
              fmt::format("has no row for {} of rank {}; add it", to_string(*missing), rank));
    program_.dependency_begin.push_back(static_cast<std::uint32_t>(program_.dependencies.size()));
  }

 private:
  Op read_op(const JsonNode& node) const {
    if (const std::optional<Op> arrival = parse_arrival(node.text()))
      return expect_in_shape(node, *arrival);
    const Cell cell = parse_cell(node.text(), CellGrammar::kOwn);
    if (!cell.sound()) node.refuse(fmt::format("{} {}", quote(node.text()), cell.fault));
    const Op& op = cell.ops[0];
    if (cell.count != 1 || op.kind == OpKind::kIdle)
      node.refuse(
          fmt::format("{} must be one op; give each half of a pair its row", quote(node.text())));
    return expect_in_shape(node, op);
  }

  /// Parses "0ARRIVE2", as to_string() writes the arrival of a micro-batch.
  static std::optional<Op> parse_arrival(std::string_view text) {
    constexpr std::string_view kArrive = "ARRIVE";
    const std::size_t at = text.find(kArrive);
    if (at == text.npos) return {};
    const auto stage = parse_number<std::int32_t>(text.substr(0, at));
    const auto microbatch = parse_number<std::int32_t>(text.substr(at + kArrive.size()));
    if (!stage || !microbatch || *stage < 0 || *microbatch < 0) return {};
    return Op{*stage, *microbatch, 0, OpKind::kIdle};
  }

  Op expect_in_shape(const JsonNode& node, const Op& op) const {
    const Shape& shape = schedule_.shape;
    if (op.stage >= schedule_.stages() || op.microbatch >= shape.microbatches ||
        op.slice >= shape.slices)
      node.refuse(fmt::format("{} is not of this schedule, which has {}, {}, {}", node.text(),
                              counted(schedule_.stages(), "stage"),
                              counted(shape.microbatches, "micro-batch"),
                              counted(shape.slices, "slice")));
    return op;
  }

  std::uint32_t read_lane(const JsonNode& node, std::int32_t rank) const {
    if (node.is_null()) return kNoLane;
    const auto lane = static_cast<std::size_t>(
        node.integer(0, static_cast<std::int64_t>(program_.lanes.size()) - 1));
    if (program_.lanes[lane].rank != rank)
      node.refuse(fmt::format("is lane {} of rank {}, but the row is of rank {}", lane,
                              program_.lanes[lane].rank, rank));
    return static_cast<std::uint32_t>(lane);
  }

  /// Checks that ops follow the order of the schedule: compute ops that of their rank, copies that
  /// of their direction. The schedule also knows which op each op is paired with.
  void match_order(const JsonNode& row, Instruction& instruction) {
    const auto rank = static_cast<std::size_t>(instruction.rank);
    if (is_compute(instruction.op.kind) && instruction.lane != rank)
      row[4].refuse(fmt::format("must be {}, the compute lane of its rank", rank));
    const Op* const expected = advance(rank, queue_of(instruction.op.kind));
    if (expected == nullptr) row[1].refuse("is one op more than its rank has in /schedule");
    const std::string wanted = to_string(*expected);
    if (to_string(instruction.op) != wanted)
      row[1].refuse(fmt::format("must be {}, which is next on rank {} in /schedule", wanted, rank));
    instruction.op = *expected;
  }

  enum Queue : std::size_t { kCompute, kEvict, kLoad, kQueues };

  static Queue queue_of(OpKind kind) {
    if (kind == OpKind::kEvict) return kEvict;
    return kind == OpKind::kLoad ? kLoad : kCompute;
  }

  /// Returns the next op of a rank's order that belongs to this queue; null at its end.
  const Op* advance(std::size_t rank, Queue queue) {
    const RankOrder& order = schedule_.order[rank];
    std::size_t& next = next_[rank][queue];
    while (next < order.size() && queue_of(order[next].kind) != queue) ++next;
    return next == order.size() ? nullptr : &order[next++];
  }

  void read_waits(const JsonNode& node) {
    program_.dependency_begin.push_back(static_cast<std::uint32_t>(program_.dependencies.size()));
    const std::size_t id = program_.instructions.size();
    for (std::size_t at = 0; at < node.size(); ++at) {
      const JsonNode awaited = node[at];
      const std::optional<std::uint64_t> row = awaited.unsigned_integer();
      if (!row || *row >= id)
        awaited.refuse(fmt::format("must be the number of a row above row {}", id));
      program_.dependencies.push_back(static_cast<InstructionId>(*row));
    }
  }

  Program& program_;
  Timeline& timeline_;
  const Schedule& schedule_;
  std::vector<std::array<std::size_t, kQueues>> next_;  ///< [rank][queue]: into its order
};

std::vector<Lane> read_lanes(const JsonNode& node, std::int32_t ranks) {
  std::vector<Lane> lanes;
  for (std::size_t at = 0; at < node.size(); ++at) {
    const JsonNode lane = node[at];
    if (lane.size() != 2) lane.refuse("must be [rank, name]");
    lanes.push_back({lane[0].integer32(0, ranks - 1), lane[1].text()});
    if (at < static_cast<std::size_t>(ranks) && lanes.back().rank != static_cast<std::int32_t>(at))
      lane.refuse(fmt::format("must be the compute lane of rank {}", at));
  }
  if (lanes.size() < static_cast<std::size_t>(ranks))
    node.refuse(fmt::format("has {} for {}; give each its compute lane first",
                            counted(lanes.size(), "entry"), counted(ranks, "rank")));
  return lanes;
}

ValidSchedule read_valid_schedule(const JsonNode& node) {
  auto validated = validate_schedule(read_schedule_object(node));
  if (const auto* invalid = std::get_if<InvalidSchedule>(&validated))
    node.refuse("is not legal: " + to_string(invalid->problems[0]));
  return std::get<ValidSchedule>(std::move(validated));
}

void expect_columns(const JsonNode& node) {
  for (std::size_t at = 0; at < kColumns.size(); ++at)
    if (node[at].text() != kColumns[at]) node[at].refuse(fmt::format("must be '{}'", kColumns[at]));
  if (node.size() != kColumns.size())
    node.refuse(fmt::format("must have {}", counted(kColumns.size(), "entry")));
}

void write_row(JsonWriter& json, const Program& program, const Timeline& timeline,
               InstructionId id) {
  const Instruction& instruction = program.instructions[id];
  json.line(1).begin_array().value(instruction.rank).value(to_string(instruction));
  json.value(timeline.start[id]).value(timeline.end[id]);
  instruction.lane == kNoLane ? json.null() : json.value(instruction.lane);
  json.value(instruction.peer).begin_array();
  for (const InstructionId awaited : program.dependencies_of(id)) json.value(awaited);
  json.end_array();
  if (instruction.role != Role::kWork)
    json.value(instruction.role == Role::kPost ? "post" : "wait");
  json.end_array();
}

const Registrar<TimelineFormat> native_timeline_registrar{[] {
  return TimelineFormat{
      "save",
      {"native"},
      "our own json, which diff reads again",
      [](const StepRecord& record, const std::string&) { return write_timeline(record); },
      {".json"}};
}};

/// Shifts the step to begin at 0, because reports state times from the beginning of the step.
void begin_at_zero(Timeline& timeline) {
  const Nanos early = std::min<Nanos>(0, find_step_bounds(timeline).start);
  for (Nanos& start : timeline.start) start -= early;
  for (Nanos& end : timeline.end) end -= early;
}

ObservedTrace read_whole_step(const TraceInput& input) {
  TimelineFile file = parse_timeline(input.text, input.path);
  ObservedTrace trace;
  trace.steps.push_back(
      {"", std::move(file.schedule), std::move(file.program), std::move(file.timeline)});
  trace.steps.back().facts = std::move(file.facts);
  if (file.job && file.job->iterations > 1)
    trace.remarks.notes.push_back(
        fmt::format("{} is the median of {}; this report is on that one alone", input.path,
                    counted(file.job->iterations, "iteration")));
  return trace;
}

const Registrar<TraceFormat> native_trace_registrar{[] {
  return TraceFormat{"native", {"save"}, "what `save` wrote", is_timeline, read_whole_step};
}};

/// Writes all but the facts, and leaves the object open.
void write_whole_step(JsonWriter& json, const ValidSchedule& schedule, const Program& program,
                      const Timeline& timeline) {
  json.begin_object().member("format", kFormat).line(1).member("source", timeline.source);
  if (timeline.is_imported) json.line(1).member("imported", true);
  if (!timeline.breakdown.empty()) json.line(1).member("breakdown", timeline.breakdown);
  write_schedule_object(json.line(1).key("schedule"), schedule);
  json.line(1).key("lanes").begin_array();
  for (const Lane& lane : program.lanes)
    json.begin_array().value(lane.rank).value(lane.name).end_array();
  json.end_array().line(1).array("columns", kColumns).line(1).key("instructions").begin_array();
  for (InstructionId id = 0; id < program.size(); ++id) write_row(json, program, timeline, id);
  json.end_array();
}

}  // namespace

std::string write_timeline(const StepRecord& record) {
  std::string out;
  JsonWriter json(out);
  write_whole_step(json, record.schedule, record.program, record.timeline);
  write_step_facts(json, record);
  if (record.job) write_job_summary(json.line(1).key("job"), *record.job);
  json.end_object();
  return out + '\n';
}

std::string write_timeline(const ValidSchedule& schedule, const Program& program,
                           const Timeline& timeline) {
  std::string out;
  JsonWriter json(out);
  write_whole_step(json, schedule, program, timeline);
  write_timeline_facts(json, timeline);
  json.end_object();
  return out + '\n';
}

TimelineFile parse_timeline(std::string_view text, const std::string& file) {
  const JsonFile json(text, file);
  const JsonNode root = json.root();
  root.expect_format(kFormat);
  root.expect_keys({"format", "source", "imported", "breakdown", "schedule", "lanes", "columns",
                    "instructions", "made_with", "memory", "parts", "links", "uncontended_ns",
                    "gaps_ns", "job"});
  TimelineFile result{read_valid_schedule(root.at("schedule"))};
  result.timeline.source = root.at("source").text();
  if (const auto imported = root.find("imported"))
    result.timeline.is_imported = imported->boolean();
  // A csv has all messages of its step, which its file need not say.
  result.timeline.may_lack_messages =
      result.timeline.is_imported && result.timeline.source != kCsvSource;
  if (const auto breakdown = root.find("breakdown")) result.timeline.breakdown = breakdown->text();
  result.program.ranks = result.schedule->shape.ranks;
  result.program.lanes = read_lanes(root.at("lanes"), result.program.ranks);
  expect_columns(root.at("columns"));
  const JsonNode rows = root.at("instructions");
  RowReader reader(result);
  for (std::size_t at = 0; at < rows.size(); ++at) reader.read(rows[at]);
  reader.finish(rows);
  ReadFacts read = read_step_facts(root, {result.schedule, result.program, result.timeline}, file);
  result.facts = std::move(read.facts);
  result.timeline.uncontended = std::move(read.uncontended);
  result.timeline.gaps = std::move(read.gaps);
  if (const auto job = root.find("job")) result.job = read_job_summary(*job);
  if (const auto fault = find_impossible_lane(result.program, result.timeline)) rows.refuse(*fault);
  begin_at_zero(result.timeline);
  return result;
}

bool is_timeline(std::string_view text) {
  return text.substr(0, 256).find("bubblescope-timeline/") != text.npos;
}

}  // namespace bubblescope::traces
