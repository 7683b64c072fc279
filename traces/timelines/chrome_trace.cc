// Chrome's trace event format: opens in Perfetto and in chrome://tracing.
//
// Sample (one event per line in the file):
//   {"ph":"X","pid":1,"tid":1,"ts":12000.000,"dur":1000.000,"name":"F mb3 s2","cat":"forward",
//    "cname":"thread_state_runnable","args":{"op":"2F3","stage":2,...}}
// A process is a rank, a thread one of its lanes: 1 computes, the others are links to other ranks.
// Flows (s, f) lead from a message to the op that waits for it; a counter (C) has the stage chunks
// whose activations a rank holds. Times are microseconds with three decimals: exact nanoseconds.
// otherData states how the step was made and contains its schedule and its facts in our own JSON,
// as strings, so that `analyze` reproduces the same report.
#include <fmt/compile.h>
#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sim/analysis/conclusions.h"
#include "traces/files/format.h"
#include "traces/json/json_writer.h"
#include "traces/schedules/native_schedule.h"
#include "traces/text/palette.h"
#include "traces/timelines/made_with.h"
#include "traces/timelines/step_details.h"
#include "traces/timelines/step_facts_json.h"
#include "traces/timelines/trace_threads.h"

namespace bubblescope::traces {

namespace {

constexpr std::size_t kBytesPerInstruction = 500;

class ChromeTrace {
 public:
  explicit ChromeTrace(const StepRecord& record)
      : record_(record),
        program_(record.program),
        timeline_(record.timeline),
        palette_(record.schedule),
        threads_(assign_threads(record.program, record.timeline)),
        critical_(record.program.size(), false),
        consumer_(find_consumers(record.program)),
        points_(find_memory_changes(record)) {
    for (const InstructionId id : record.report.critical_path) critical_[id] = true;
    out_.reserve(kBytesPerInstruction * record.program.size());
  }

  std::string write() && {
    json_.begin_object().member("displayTimeUnit", "ms");
    write_other_data();
    json_.line(0).key("traceEvents").begin_array();
    write_names();
    auto point = points_.begin();
    for (const TraceSlice& slice : threads_.slices) {
      for (; point != points_.end() && point->time <= slice.start; ++point) write_counter(*point);
      write_slice(slice);
      write_flows(slice);
    }
    for (; point != points_.end(); ++point) write_counter(*point);
    json_.line(0).end_array().end_object();
    return std::move(out_ += '\n');
  }

 private:
  const TraceThread& thread(const TraceSlice& slice) const {
    return threads_.threads[slice.thread];
  }

  void write_other_data() {
    const BubbleReport& report = record_.report;
    json_.key("otherData").begin_object().member("tool", "bubblescope " BUBBLESCOPE_VERSION);
    json_.member("source", timeline_.source).member("schedule", record_.schedule->name);
    json_.member("pp", report.shape.ranks).member("vpp", report.shape.chunks);
    json_.member("microbatches", report.shape.microbatches);
    json_.member("makespan_ns", report.makespan);
    if (is_conclusive(report)) json_.member("bubble_ratio", report.bubble->ratio);
    if (!timeline_.breakdown.empty()) json_.member("breakdown", timeline_.breakdown);
    for (const auto& [key, value] : describe(record_.made)) json_.member(key, value);
    json_.member("native_facts", format_step_facts(record_));
    json_.member("native_schedule", write_native_schedule(record_.schedule)).end_object();
  }

  /// Begins an event; `phase` is the format's letter for its kind.
  JsonWriter& begin_event(const char* phase, std::int32_t rank) {
    return json_.line(0).begin_object().member("ph", phase).member("pid", rank);
  }

  JsonWriter& write_micros(const char* key, Nanos time) {
    const auto end =
        fmt::format_to(micros_.data(), FMT_COMPILE("{}.{:03}"), time / 1000, time % 1000);
    return json_.key(key).raw({micros_.data(), static_cast<std::size_t>(end - micros_.data())});
  }

  void write_names() {
    for (std::int32_t rank = 0; rank < program_.ranks; ++rank) {
      begin_event("M", rank).member("name", "process_name").key("args").begin_object();
      json_.member("name", fmt::format("rank {}", rank)).end_object().end_object();
      begin_event("M", rank).member("name", "process_sort_index").key("args").begin_object();
      json_.member("sort_index", rank).end_object().end_object();
    }
    for (const TraceThread& named : threads_.threads) {
      begin_event("M", named.rank).member("tid", named.tid).member("name", "thread_name");
      json_.key("args").begin_object().member("name", named.name).end_object().end_object();
      begin_event("M", named.rank).member("tid", named.tid).member("name", "thread_sort_index");
      json_.key("args").begin_object().member("sort_index", named.tid).end_object().end_object();
    }
  }

  void write_slice(const TraceSlice& slice) {
    const Instruction& instruction = program_.instructions[slice.id];
    const Op& op = instruction.op;
    const bool waits = instruction.role == Role::kWait;
    begin_event("X", thread(slice).rank).member("tid", thread(slice).tid);
    write_micros("ts", slice.start);
    write_micros("dur", slice.end - slice.start);
    std::string name = waits ? "wait " : "";
    name += is_arrival(instruction) ? "arrive" : code(op.kind);
    if (has_microbatch(op.kind) || is_arrival(instruction))
      name += fmt::format(FMT_COMPILE(" mb{}"), op.microbatch);
    name += fmt::format(FMT_COMPILE(" s{}"), op.stage);
    json_.member("name", name).member("cat", waits ? "wait" : style_of(op.kind).category);
    json_.member("cname", waits ? "grey" : style_of(op.kind).reserved_colour)
        .key("args")
        .begin_object();
    write_arguments(slice.id);
    json_.end_object().end_object();
  }

  /// Sender and receiver have the names that PyTorch's profiler gives them.
  void write_arguments(InstructionId id) {
    const Instruction& instruction = program_.instructions[id];
    const Op& op = instruction.op;
    json_.member("op", to_string(op)).member("stage", op.stage).member("mb_id", op.microbatch);
    json_.member("microbatch", op.microbatch).member("chunk", palette_.chunk(op));
    if (is_conclusive(record_.report)) {
      json_.member("slack_ns", record_.report.slack[id]);
      json_.member("critical", static_cast<bool>(critical_[id]));
    }
    if (record_.schedule->shape.slices > 1) json_.member("slice", op.slice);
    if (!is_message(op.kind)) return;
    const bool receives = is_recv(op.kind);
    json_.member("Src Rank", receives ? instruction.peer : instruction.rank);
    json_.member("Dst Rank", receives ? instruction.rank : instruction.peer);
  }

  enum class FlowEnd : std::uint8_t { kStart, kFinish };

  void write_flows(const TraceSlice& slice) {
    if (consumer_[slice.id] != kNoInstruction) write_flow_end(slice.id, slice, FlowEnd::kStart);
    for (const InstructionId dependency : program_.dependencies_of(slice.id))
      if (consumer_[dependency] == slice.id) write_flow_end(dependency, slice, FlowEnd::kFinish);
  }

  /// Writes one end of a flow, at the start of the slice that it belongs to.
  void write_flow_end(InstructionId message, const TraceSlice& at, FlowEnd end) {
    json_.line(0).begin_object().member("ph", end == FlowEnd::kStart ? "s" : "f");
    if (end == FlowEnd::kFinish) json_.member("bp", "e");
    json_.member("id", message).member("pid", thread(at).rank).member("tid", thread(at).tid);
    write_micros("ts", at.start).member("name", "message").member("cat", "p2p").end_object();
  }

  void write_counter(const MemoryPoint& point) {
    begin_event("C", point.rank);
    write_micros("ts", point.time).member("name", "held activations").key("args").begin_object();
    const double chunks = chunks_of(point.held, record_.schedule->shape);
    json_.key("chunks").shortest(chunks).end_object().end_object();
  }

  const StepRecord& record_;
  const Program& program_;
  const Timeline& timeline_;
  Palette palette_;
  TraceThreads threads_;
  std::vector<bool> critical_;
  std::vector<InstructionId> consumer_;
  std::vector<MemoryPoint> points_;
  std::string out_;
  JsonWriter json_{out_};
  std::array<char, 32> micros_{};
};

const Registrar<TimelineFormat> chrome_trace_registrar{[] {
  return TimelineFormat{
      "trace",
      {"chrome"},
      "Chrome trace (json, .gz by name): opens in ui.perfetto.dev and chrome://tracing",
      [](const StepRecord& record, const std::string&) { return ChromeTrace(record).write(); },
      {".json"}};
}};

}  // namespace

}  // namespace bubblescope::traces
