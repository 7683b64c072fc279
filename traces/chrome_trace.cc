// Chrome's trace event format: opens in Perfetto and in chrome://tracing.
//
// Sample (one event per line in the file):
//   {"ph":"X","pid":1,"tid":1,"ts":12000.000,"dur":1000.000,"name":"F mb3 s2","cat":"forward",
//    "cname":"thread_state_runnable","args":{"op":"2F3","stage":2,...}}
// A process is a rank, a thread one of its lanes: 1 computes, the others are links to other ranks.
// Flows (s, f) lead from a message to the op that waits for it; a counter (C) has the stage chunks
// whose activations a rank holds. Times are microseconds with three decimals: exact nanoseconds.
// otherData says what the step was made with and has the schedule in our own json, as a text, so
// that `analyze` gives the very report back.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "sim/analysis/conclusions.h"
#include "traces/format.h"
#include "traces/json_string.h"
#include "traces/made_with.h"
#include "traces/native_schedule.h"
#include "traces/palette.h"
#include "traces/step_details.h"
#include "traces/trace_threads.h"

namespace bubblescope {

namespace {

/// The reserved colour of chrome://tracing that is nearest to the palette's.
std::string_view reserved_colour(OpKind kind) {
  switch (kind) {
    case OpKind::kForward: return "thread_state_runnable";
    case OpKind::kBackward: return "thread_state_running";
    case OpKind::kInputGrad: return "background_memory_dump";
    case OpKind::kWeightGrad: return "thread_state_iowait";
    case OpKind::kRecompute: return "detailed_memory_dump";
    case OpKind::kSendForward:
    case OpKind::kRecvForward:
    case OpKind::kSendBackward:
    case OpKind::kRecvBackward:
    case OpKind::kWaitSendForward:
    case OpKind::kWaitSendBackward: return "generic_work";
    case OpKind::kEvict: return "olive";
    case OpKind::kLoad: return "rail_load";
    case OpKind::kUnshard:
    case OpKind::kReshard:
    case OpKind::kReduceGrad:
    case OpKind::kWaitReduceGrad:
    case OpKind::kNorm: return "terrible";
    case OpKind::kOptimizer: return "vsync_highlight_color";
    case OpKind::kIdle: return "white";
  }
  return "";
}

constexpr std::size_t kBytesPerInstruction = 500;

/// A time as microseconds with three decimals.
struct Micros {
  Nanos whole;
  Nanos thousandths;
  explicit Micros(Nanos time) : whole(time / 1000), thousandths(time % 1000) {}
};

class ChromeTrace {
 public:
  explicit ChromeTrace(const Recording& recording)
      : recording_(recording),
        program_(recording.program),
        timeline_(recording.timeline),
        palette_(recording.schedule),
        threads_(assign_threads(recording.program, recording.timeline)),
        critical_(recording.program.size(), false),
        consumer_(find_consumers(recording.program)),
        points_(find_memory_changes(recording)) {
    for (const InstructionId id : recording.report.critical_path) critical_[id] = true;
    out_.reserve(kBytesPerInstruction * recording.program.size());
  }

  std::string write() && {
    print("{{\"displayTimeUnit\":\"ms\",\"otherData\":{},\n\"traceEvents\":[", other_data());
    write_names();
    auto point = points_.begin();
    for (const TraceSlice& slice : threads_.slices) {
      for (; point != points_.end() && point->time <= slice.start; ++point) write_counter(*point);
      write_slice(slice);
      write_flows(slice);
    }
    for (; point != points_.end(); ++point) write_counter(*point);
    print("\n]}}\n");
    return fmt::to_string(out_);
  }

 private:
  template <class... Values>
  void print(fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(fmt::appender(out_), format, std::forward<Values>(values)...);
  }

  const TraceThread& thread(const TraceSlice& slice) const {
    return threads_.threads[slice.thread];
  }

  std::string other_data() const {
    const BubbleReport& report = recording_.report;
    nlohmann::ordered_json data{{"tool", "bubblescope " BUBBLESCOPE_VERSION},
                                {"source", timeline_.source},
                                {"schedule", recording_.schedule->name},
                                {"pp", report.shape.ranks},
                                {"vpp", report.shape.chunks},
                                {"microbatches", report.shape.microbatches},
                                {"makespan_ns", report.makespan}};
    if (is_conclusive(report)) data["bubble_ratio"] = report.bubble.ratio;
    if (!timeline_.breakdown.empty()) data["breakdown"] = timeline_.breakdown;
    for (const auto& [key, value] : describe(recording_.made)) data[key] = value;
    data["native_schedule"] = write_native_schedule(recording_.schedule);
    return data.dump(-1, ' ', true, nlohmann::ordered_json::error_handler_t::replace);
  }

  void write_names() {
    const char* separator = "\n";
    for (std::int32_t rank = 0; rank < program_.ranks; ++rank) {
      print(
          "{}{{\"ph\":\"M\",\"pid\":{},\"name\":\"process_name\",\"args\":{{\"name\":\"rank "
          "{}\"}}}},\n"
          "{{\"ph\":\"M\",\"pid\":{},\"name\":\"process_sort_index\",\"args\":{{\"sort_index\":{}}}"
          "}}",
          separator, rank, rank, rank, rank);
      separator = ",\n";
    }
    for (const TraceThread& named : threads_.threads)
      print(
          ",\n{{\"ph\":\"M\",\"pid\":{},\"tid\":{},\"name\":\"thread_name\",\"args\":{{\"name\":{}}"
          "}}},\n"
          "{{\"ph\":\"M\",\"pid\":{},\"tid\":{},\"name\":\"thread_sort_index\",\"args\":{{\"sort_"
          "index\":{}}}}}",
          named.rank, named.tid, json_string(named.name), named.rank, named.tid, named.tid);
  }

  void write_slice(const TraceSlice& slice) {
    const Instruction& instruction = program_.instructions[slice.id];
    const Op& op = instruction.op;
    const bool waits = instruction.role == Role::kWait;
    const Micros start(slice.start);
    const Micros duration(slice.end - slice.start);
    print(
        ",\n{{\"ph\":\"X\",\"pid\":{},\"tid\":{},\"ts\":{}.{:03},\"dur\":{}.{:03},\"name\":\"{}{} ",
        thread(slice).rank, thread(slice).tid, start.whole, start.thousandths, duration.whole,
        duration.thousandths, waits ? "wait " : "", code(op.kind));
    if (has_microbatch(op.kind)) print("mb{} ", op.microbatch);
    print("s{}\",\"cat\":\"{}\",\"cname\":\"{}\",\"args\":{{\"op\":\"", op.stage,
          waits ? "wait" : category(op.kind), waits ? "grey" : reserved_colour(op.kind));
    write_arguments(slice.id);
  }

  /// The rest of a slice. Who sends and who receives is told under the names that PyTorch's
  /// profiler gives them.
  void write_arguments(InstructionId id) {
    const Instruction& instruction = program_.instructions[id];
    const Op& op = instruction.op;
    print("{}\",\"stage\":{},\"mb_id\":{},\"microbatch\":{},\"chunk\":{}", to_string(op), op.stage,
          op.microbatch, op.microbatch, palette_.chunk(op));
    if (is_conclusive(recording_.report))
      print(",\"slack_ns\":{},\"critical\":{}", recording_.report.slack[id],
            static_cast<bool>(critical_[id]));
    if (recording_.schedule->shape.slices > 1) print(",\"slice\":{}", op.slice);
    const bool receives = is_recv(op.kind);
    if (is_message(op.kind))
      print(",\"Src Rank\":{},\"Dst Rank\":{}", receives ? instruction.peer : instruction.rank,
            receives ? instruction.rank : instruction.peer);
    print("}}}}");
  }

  void write_flows(const TraceSlice& slice) {
    if (consumer_[slice.id] != kNoInstruction) write_flow_end(slice.id, slice, "s\"");
    for (const InstructionId dependency : program_.dependencies_of(slice.id))
      if (consumer_[dependency] == slice.id) write_flow_end(dependency, slice, "f\",\"bp\":\"e\"");
  }

  /// Bound to the slice at whose start it stands.
  void write_flow_end(InstructionId message, const TraceSlice& at, const char* phase) {
    const Micros time(at.start);
    print(
        ",\n{{\"ph\":\"{},\"id\":{},\"pid\":{},\"tid\":{},\"ts\":{}.{:03},\"name\":\"message\","
        "\"cat\":\"p2p\"}}",
        phase, message, thread(at).rank, thread(at).tid, time.whole, time.thousandths);
  }

  void write_counter(const MemoryPoint& point) {
    const Micros time(point.time);
    const double chunks = chunks_of(point.held, recording_.schedule->shape);
    print(
        ",\n{{\"ph\":\"C\",\"pid\":{},\"ts\":{}.{:03},\"name\":\"held "
        "activations\",\"args\":{{\"chunks\":{}}}}}",
        point.rank, time.whole, time.thousandths, chunks);
  }

  const Recording& recording_;
  const Program& program_;
  const Timeline& timeline_;
  Palette palette_;
  TraceThreads threads_;
  std::vector<bool> critical_;
  std::vector<InstructionId> consumer_;
  std::vector<MemoryPoint> points_;
  fmt::memory_buffer out_;
};

const Registrar<TimelineFormat> kRegistrar{
    {"trace",
     {"chrome"},
     "Chrome trace (json, .gz by name): opens in ui.perfetto.dev and chrome://tracing",
     [](const Recording& recording, const std::string&) { return ChromeTrace(recording).write(); },
     {".json"}}};

}  // namespace

}  // namespace bubblescope
