// Writes the data of the HTML page. Numbers are stored as differences from a prediction: the same
// lane, the end of the previous op there, the duration of the last op of its kind.
#include "traces/drawings/html_data.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "sim/analysis/conclusions.h"
#include "sim/analysis/idle.h"
#include "traces/drawings/svg_parts.h"
#include "traces/files/base64.h"
#include "traces/json/json_writer.h"
#include "traces/text/palette.h"
#include "traces/text/wording.h"
#include "traces/timelines/made_with.h"
#include "traces/timelines/step_details.h"
#include "traces/timelines/trace_threads.h"

namespace bubblescope::traces {

namespace {

/// Appends json to a text that is passed on to the page piece by piece.
class PageWriter {
 public:
  explicit PageWriter(const Sink& sink) : sink_(sink), json_(text_, {.ascii = true}) {}

  JsonWriter& json() { return json_; }

  /// Passes on what was written. No HTML tag can begin in it.
  void flush() {
    for (std::size_t at = text_.find('<'); at != text_.npos; at = text_.find('<', at))
      text_.replace(at, 1, "\\u003c");
    sink_(text_);
    text_.clear();
  }

  /// Writes a member whose value is a long list of numbers.
  template <class Write>
  void write_list(const char* name, const Write& write) {
    json_.line(0).key(name).raw("\"");
    flush();
    Base64Numbers out(sink_);
    write(out);
    out.finish();
    text_ += '"';
  }

 private:
  const Sink& sink_;
  std::string text_;
  JsonWriter json_;
};

void write_rank(JsonWriter& json, const RankReport& rank) {
  json.begin_object().member("recorded", rank.is_recorded);
  json.member("busy", rank.busy).member("idle", rank.idle);
  json.array("busyBy", rank.busy_by_kind).array("idleBy", rank.idle_by_cause);
  json.member("sends", rank.sends).member("peakChunks", rank.peak.chunks);
  json.member("peakActivations", rank.peak.activations);
  json.member_or_null("peakBytes", rank.peak.bytes).end_object();
}

void write_report(JsonWriter& json, const BubbleReport& report) {
  json.member("makespan", report.makespan).member("maxSpan", report.max_span);
  json.member("ideal", report.ideal).member("isConclusive", is_conclusive(report));
  if (is_conclusive(report)) {
    json.member("lowerBound", report.lower_bound).member("ratio", report.bubble->ratio);
    json.member("overhead", report.bubble->overhead);
    json.member("spanRate", report.bubble->span_rate);
  }
  json.key("ranks").begin_array();
  for (const RankReport& rank : report.ranks) write_rank(json, rank);
  json.end_array();
}

/// Writes a step without its lists.
void write_description(JsonWriter& json, const ShownStep& step, const TraceThreads& threads) {
  const StepRecord& record = step.record;
  const Shape& shape = record.report.shape;
  write_report(json, record.report);
  json.member("label", step.label).member_or_null("against", step.predicted_by);
  json.member("schedule", record.schedule->name).member("shape", shape_text(shape));
  json.member("slices", shape.slices).member("source", record.timeline.source);
  json.member("breakdown", record.timeline.breakdown).key("made").begin_array();
  for (const auto& [key, value] : describe(record.made))
    json.begin_array().value(key).value(value).end_array();
  json.end_array().member("origin", find_step_bounds(record.timeline).start);
  json.array("chunks", chunk_of_stage(record.schedule)).key("threads").begin_array();
  for (const TraceThread& thread : threads.threads)
    json.begin_array().value(thread.rank).value(thread.name).end_array();
  json.end_array().member("count", record.program.size());
}

constexpr std::uint64_t kRoleShift = 5;
constexpr std::uint64_t kCriticalBit = 1 << 7;

/// The prediction for the next instruction of a thread and kind.
struct Expected {
  std::int64_t microbatch = 0;
  Nanos duration = 0;
  Nanos slack = 0;
};

/// Writes the instructions in the Program's order, including hidden ones, because dependencies lead
/// through them. Thread 0 is for hidden ones; the first of the step's threads is 1.
class OpWriter {
 public:
  OpWriter(const ShownStep& step, const TraceThreads& threads, Base64Numbers& out)
      : record_(step.record),
        program_(step.record.program),
        out_(out),
        thread_(program_.size(), 0),
        start_(step.record.timeline.start),
        critical_(program_.size(), false),
        last_end_(threads.threads.size() + 1, find_step_bounds(step.record.timeline).start),
        last_stage_(threads.threads.size() + 1, 0),
        expected_((threads.threads.size() + 1) * kOpKinds) {
    for (const TraceSlice& slice : threads.slices) {
      thread_[slice.id] = slice.thread + 1;
      start_[slice.id] = slice.start;
    }
    for (const InstructionId id : record_.report.critical_path) critical_[id] = true;
  }

  void write() {
    for (InstructionId id = 0; id < program_.size(); ++id) write(id);
  }

 private:
  void write(InstructionId id) {
    const Instruction& instruction = program_.instructions[id];
    const Op& op = instruction.op;
    const auto kind = static_cast<std::uint64_t>(op.kind);
    const std::size_t thread = thread_[id];
    Expected& likely = expected_[thread * kOpKinds + kind];
    out_.add(kind | static_cast<std::uint64_t>(instruction.role) << kRoleShift |
             (critical_[id] ? kCriticalBit : 0));
    add_change(previous_thread_, static_cast<std::int64_t>(thread));
    add_change(last_stage_[thread], op.stage);
    add_change(likely.microbatch, op.microbatch);
    if (record_.schedule->shape.slices > 1) out_.add(static_cast<std::uint64_t>(op.slice));
    add_change(last_end_[thread], start_[id]);
    add_change(likely.duration, record_.timeline.end[id] - start_[id]);
    const std::vector<Nanos>& slack = record_.report.slack;
    add_change(likely.slack, id < slack.size() ? slack[id] : 0);
    last_end_[thread] = record_.timeline.end[id];
    const auto dependencies = program_.dependencies_of(id);
    out_.add(dependencies.size());
    for (const InstructionId dependency : dependencies) out_.add(id - dependency);
  }

  void add_change(std::int64_t& before, std::int64_t now) {
    out_.add_signed(now - before);
    before = now;
  }

  const StepRecord& record_;
  const Program& program_;
  Base64Numbers& out_;
  std::vector<std::uint32_t> thread_;  ///< per instruction
  std::vector<Nanos> start_;           ///< per instruction, as it is shown
  std::vector<bool> critical_;
  std::vector<Nanos> last_end_;           ///< per thread
  std::vector<std::int64_t> last_stage_;  ///< per thread
  std::vector<Expected> expected_;        ///< per thread and kind
  std::int64_t previous_thread_ = 0;
};

/// Writes per rank the number of gaps, then the gaps.
void write_idle(const StepRecord& record, Base64Numbers& out) {
  std::vector<IdleGap> gaps;
  if (is_conclusive(record.report)) gaps = find_idle_gaps(record.program, record.timeline);
  auto gap = gaps.begin();
  for (std::int32_t rank = 0; rank < record.program.ranks; ++rank) {
    const auto end =
        std::find_if(gap, gaps.end(), [rank](const IdleGap& each) { return each.rank != rank; });
    out.add(static_cast<std::uint64_t>(end - gap));
    Nanos from = find_step_bounds(record.timeline).start;
    for (; gap != end; ++gap) {
      out.add(static_cast<std::uint64_t>(gap->cause));
      out.add_signed(gap->start - from);
      out.add_signed(gap->end - gap->start);
      from = gap->end;
    }
  }
}

/// A rank's memory over time, in the unit of the page.
struct Curve {
  std::vector<Nanos> times;
  std::vector<std::int64_t> values;
};

struct Curves {
  bool in_bytes = false;
  std::int64_t unit = 1;  ///< all values are multiples of it
  std::vector<Curve> ranks;
};

Curves memory_curves(const StepRecord& record) {
  const MemoryModel& memory = record.report.memory;
  Curves curves{has_bytes(memory), 0, {}};
  curves.ranks.resize(static_cast<std::size_t>(record.program.ranks));
  const auto add = [&](const MemoryPoint& point) {
    const std::int64_t value =
        curves.in_bytes ? bytes_of(point.held, point.rank, memory) : point.held.chunk_millionths;
    Curve& curve = curves.ranks[static_cast<std::size_t>(point.rank)];
    curve.times.push_back(point.time);
    curve.values.push_back(value);
    curves.unit = std::gcd(curves.unit, value);
  };
  for (std::int32_t rank = 0; rank < record.program.ranks; ++rank)
    add({find_step_bounds(record.timeline).start, rank, kNoInstruction, {}});
  for (const MemoryPoint& point : find_memory_changes(record)) add(point);
  curves.unit = std::max<std::int64_t>(curves.unit, 1);
  return curves;
}

void write_memory(const StepRecord& record, const Curves& curves, Base64Numbers& out) {
  for (const Curve& curve : curves.ranks) {
    out.add(curve.times.size());
    Nanos time = find_step_bounds(record.timeline).start;
    std::int64_t value = 0;
    for (std::size_t at = 0; at < curve.times.size(); ++at) {
      out.add_signed(curve.times[at] - time);
      out.add_signed((curve.values[at] - value) / curves.unit);
      time = curve.times[at];
      value = curve.values[at];
    }
  }
}

/// Writes the lanes that parts use and the runs of their ops; their places in the step are a list.
void write_part_runs(JsonWriter& json, const BubbleReport& report) {
  const std::vector<PartLane> lanes = find_part_lanes(report);
  json.key("partLanes").begin_array();
  for (const PartLane lane : lanes) json.value(kPartLanes[lane].name);
  json.end_array().key("partRuns").begin_array();
  for (const PartRun& run : report.parts->runs) {
    json.begin_object().member("time", run.time).key("uses").begin_array();
    for (const PartUse& use : run.uses) {
      const auto lane = std::find(lanes.begin(), lanes.end(), use.lane) - lanes.begin();
      json.begin_array().value(use.name).value(lane).value(use.of_backward ? 1 : 0).end_array();
    }
    json.end_array().key("spans").begin_array();
    for (const PartSpan& span : run.spans)
      json.begin_array()
          .value(span.use)
          .value(span.layer)
          .value(span.start)
          .value(span.end)
          .end_array();
    json.end_array().end_object();
  }
  json.end_array();
}

void write_part_places(const BubbleReport& report, Base64Numbers& out) {
  out.add(report.parts->placed.size());
  for (const PlacedRun& placed : report.parts->placed) {
    out.add(placed.first);
    out.add(placed.last - placed.first);
    out.add(placed.run);
  }
}

void write_step(PageWriter& page, const ShownStep& step) {
  const TraceThreads threads = assign_threads(step.record.program, step.record.timeline);
  const Curves curves = memory_curves(step.record);
  const double scale = curves.in_bytes ? 1 : 1e6 * step.record.schedule->shape.slices;
  page.json().begin_object();
  write_description(page.json(), step, threads);
  page.json().member("memoryInBytes", curves.in_bytes);
  page.json().member("memoryUnit", static_cast<double>(curves.unit) / scale);
  page.write_list("ops", [&](Base64Numbers& out) { OpWriter(step, threads, out).write(); });
  page.write_list("idle", [&](Base64Numbers& out) { write_idle(step.record, out); });
  page.write_list("memory", [&](Base64Numbers& out) { write_memory(step.record, curves, out); });
  const BubbleReport& report = step.record.report;
  if (report.parts) {
    write_part_runs(page.json(), report);
    page.write_list("partPlaces", [&](Base64Numbers& out) { write_part_places(report, out); });
  }
  page.json().end_object();
}

void write_kinds(JsonWriter& json) {
  json.key("kinds").begin_array();
  for (int kind = 0; kind < kOpKinds; ++kind) {
    const auto of = static_cast<OpKind>(kind);
    json.begin_object().member("code", code(of)).member("name", style_of(of).meaning);
    json.member("colour", hex(style_of(of).colour)).member("hasMicrobatch", has_microbatch(of));
    json.end_object();
  }
  json.end_array();
}

/// "workers":{"columns":[[0,0],[1,1]],"rows":[{"worker":"rank 3 of replica 0","S":[1.25,1]}],
///            "unnoticed":6,"cut":0}
void write_workers(JsonWriter& json, const WorkerMap& map) {
  json.line(0).key("workers").begin_object().key("columns").begin_array();
  for (const WorkerMapColumn& column : map.columns)
    json.begin_array().value(column.first).value(column.last).end_array();
  json.end_array().key("rows").begin_array();
  for (const WorkerMapRow& row : map.rows) {
    json.begin_object().member("worker", row.worker).key("S").begin_array();
    for (const double slowdown : row.slowdowns) json.fixed(slowdown, 4);
    json.end_array().end_object();
  }
  json.end_array().member("unnoticed", map.unnoticed).member("cut", map.cut).end_object();
}

/// "longSteps":{"causes":[{"what":"slow worker: ...","wouldSave":"the step would be ...",
///                         "caveat":"","saves":37030000,"share":0.0906}],"remark":"..."}
void write_causes(JsonWriter& json, const CausesInWords& words) {
  json.line(0).key("longSteps").begin_object().key("causes").begin_array();
  for (const CauseWords& cause : words.causes) {
    json.begin_object().member("what", cause.what).member("wouldSave", cause.would_save);
    json.member("caveat", cause.caveat).member("saves", cause.saves);
    json.key("share").fixed(cause.share, 6).end_object();
  }
  json.end_array().member("remark", words.remark).end_object();
}

/// "changes":[{"title":"workers, by S","rows":[["rank 2","1.000","1.086","+0.086"]],"remark":""}]
void write_changes(JsonWriter& json, const std::vector<ChangeTable>& tables) {
  json.line(0).key("changes").begin_array();
  for (const ChangeTable& table : tables) {
    json.begin_object().member("title", table.title).key("rows").begin_array();
    for (const ChangeRow& row : table.rows)
      json.begin_array().value(row.what).value(row.a).value(row.b).value(row.change).end_array();
    json.end_array().member("remark", table.remark).end_object();
  }
  json.end_array();
}

}  // namespace

void write_html_data(const ReportSet& report_set, const Sink& sink) {
  PageWriter page(sink);
  JsonWriter& json = page.json();
  json.begin_object().member("version", BUBBLESCOPE_VERSION).member("command", report_set.command);
  write_kinds(json);
  json.member("computeKinds", kComputeKinds).key("causes").begin_array();
  for (int cause = 0; cause < kIdleCauses; ++cause) json.value(name(static_cast<IdleCause>(cause)));
  json.end_array().key("busyKinds").begin_array();
  for (int kind = 0; kind < kBusyKinds; ++kind) json.value(name(static_cast<BusyKind>(kind)));
  json.end_array().line(0).key("steps").begin_array();
  for (const ShownStep& step : report_set.steps) {
    json.line_between(0);
    write_step(page, step);
  }
  json.end_array();
  if (!report_set.workers.rows.empty()) write_workers(json, report_set.workers);
  const CausesInWords& causes = report_set.causes;
  if (!causes.causes.empty() || !causes.remark.empty()) write_causes(json, causes);
  if (!report_set.changes.empty()) write_changes(json, report_set.changes);
  json.end_object();
  page.flush();
}

}  // namespace bubblescope::traces
