// Writes the data of the HTML page. Numbers are stored as differences from a prediction: the same
// lane, the end of the previous op there, the duration of the last op of its kind.
#include "traces/drawings/html_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "sim/analysis/conclusions.h"
#include "sim/analysis/idle.h"
#include "traces/files/base64.h"
#include "traces/text/palette.h"
#include "traces/text/wording.h"
#include "traces/timelines/made_with.h"
#include "traces/timelines/step_details.h"
#include "traces/timelines/trace_threads.h"

namespace bubblescope::traces {

namespace {

using Json = nlohmann::ordered_json;

/// Escapes a name from a file: invalid UTF-8 is replaced, and no HTML tag can begin in it.
std::string text_of(const Json& json) {
  std::string text = json.dump(-1, ' ', true, Json::error_handler_t::replace);
  for (std::size_t at = text.find('<'); at != text.npos; at = text.find('<', at))
    text.replace(at, 1, "\\u003c");
  return text;
}

/// The members of an object without its braces, so that more can follow.
std::string members_of(const Json& object) {
  const std::string text = text_of(object);
  return text.substr(1, text.size() - 2);
}

Json describe_rank(const RankReport& rank) {
  Json json{{"busy", rank.busy},
            {"idle", rank.idle},
            {"busyBy", rank.busy_by_kind},
            {"idleBy", rank.idle_by_cause},
            {"sends", rank.sends},
            {"peakChunks", rank.peak.chunks},
            {"peakActivations", rank.peak.activations},
            {"peakBytes", nullptr}};
  if (rank.peak.bytes) json["peakBytes"] = *rank.peak.bytes;
  return json;
}

Json describe_report(const BubbleReport& report) {
  Json json{{"makespan", report.makespan},
            {"maxSpan", report.max_span},
            {"ideal", report.ideal},
            {"isConclusive", is_conclusive(report)}};
  if (is_conclusive(report)) {
    json["lowerBound"] = report.lower_bound;
    json["ratio"] = report.bubble.ratio;
    json["overhead"] = report.bubble.overhead;
    json["spanRate"] = report.bubble.span_rate;
  }
  json["ranks"] = Json::array();
  for (const RankReport& rank : report.ranks) json["ranks"].push_back(describe_rank(rank));
  return json;
}

/// Describes a step without its lists.
Json describe_step(const ShownStep& step, const TraceThreads& threads) {
  const StepRecord& record = step.record;
  const Shape& shape = record.report.shape;
  Json json = describe_report(record.report);
  json["label"] = step.label;
  json["against"] = nullptr;
  if (step.predicted_by) json["against"] = *step.predicted_by;
  json["schedule"] = record.schedule->name;
  json["shape"] = shape_text(shape);
  json["slices"] = shape.slices;
  json["source"] = record.timeline.source;
  json["breakdown"] = record.timeline.breakdown;
  json["made"] = describe(record.made);
  json["origin"] = find_step_bounds(record.timeline).start;
  json["chunks"] = chunk_of_stage(record.schedule);
  json["threads"] = Json::array();
  for (const TraceThread& thread : threads.threads)
    json["threads"].push_back({thread.rank, thread.name});
  json["count"] = record.program.size();
  return json;
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
    tell(previous_thread_, static_cast<std::int64_t>(thread));
    tell(last_stage_[thread], op.stage);
    tell(likely.microbatch, op.microbatch);
    if (record_.schedule->shape.slices > 1) out_.add(static_cast<std::uint64_t>(op.slice));
    tell(last_end_[thread], start_[id]);
    tell(likely.duration, record_.timeline.end[id] - start_[id]);
    const std::vector<Nanos>& slack = record_.report.slack;
    tell(likely.slack, id < slack.size() ? slack[id] : 0);
    last_end_[thread] = record_.timeline.end[id];
    const auto dependencies = program_.dependencies_of(id);
    out_.add(dependencies.size());
    for (const InstructionId dependency : dependencies) out_.add(id - dependency);
  }

  void tell(std::int64_t& before, std::int64_t now) {
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

template <class Write>
void write_list(const char* name, const Sink& sink, Write write) {
  sink(fmt::format(",\n\"{}\":\"", name));
  Base64Numbers out(sink);
  write(out);
  out.finish();
  sink("\"");
}

void write_step(const ShownStep& step, const Sink& sink) {
  const TraceThreads threads = assign_threads(step.record.program, step.record.timeline);
  const Curves curves = memory_curves(step.record);
  Json json = describe_step(step, threads);
  json["memoryInBytes"] = curves.in_bytes;
  const double scale = curves.in_bytes ? 1 : 1e6 * step.record.schedule->shape.slices;
  json["memoryUnit"] = static_cast<double>(curves.unit) / scale;
  sink("{" + members_of(json));
  write_list("ops", sink, [&](Base64Numbers& out) { OpWriter(step, threads, out).write(); });
  write_list("idle", sink, [&](Base64Numbers& out) { write_idle(step.record, out); });
  write_list("memory", sink, [&](Base64Numbers& out) { write_memory(step.record, curves, out); });
  sink("}");
}

Json describe_kinds() {
  Json kinds = Json::array();
  for (int kind = 0; kind < kOpKinds; ++kind) {
    const auto of = static_cast<OpKind>(kind);
    kinds.push_back({{"code", code(of)},
                     {"name", meaning(of)},
                     {"colour", hex(base_colour(of))},
                     {"hasMicrobatch", has_microbatch(of)}});
  }
  return kinds;
}

}  // namespace

void write_html_data(const ReportSet& report_set, const Sink& sink) {
  Json json{{"version", BUBBLESCOPE_VERSION}, {"command", report_set.command}};
  json["kinds"] = describe_kinds();
  json["computeKinds"] = kComputeKinds;
  json["causes"] = Json::array();
  for (int cause = 0; cause < kIdleCauses; ++cause)
    json["causes"].push_back(name(static_cast<IdleCause>(cause)));
  json["busyKinds"] = Json::array();
  for (int kind = 0; kind < kBusyKinds; ++kind)
    json["busyKinds"].push_back(name(static_cast<BusyKind>(kind)));
  sink("{" + members_of(json) + ",\n\"steps\":[");
  for (std::size_t at = 0; at < report_set.steps.size(); ++at) {
    if (at > 0) sink(",\n");
    write_step(report_set.steps[at], sink);
  }
  sink("]}");
}

}  // namespace bubblescope::traces
