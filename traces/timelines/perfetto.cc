// Perfetto's own trace format, which ui.perfetto.dev opens and trace_processor queries: protobuf
// packets with exact nanoseconds, a quarter of the size of Chrome's JSON.
//
//   1f1b: 4 ranks, 8 micro-batches    the step: one slice with what it was made with and came to
//     critical path                   0F0 0SEND_F0 1F0 ...
//   rank 0
//     compute                         0F0 0F1 ...  stage, microbatch, chunk, slack_ns, critical,
//                                                  idle_dependency_ns: what it waited before
//     send → rank 1                   0SEND_F0 ... an arrow from the op that made it, one to the
//                                                  op that waits for it
//     idle                            warmup dependency ... drain
//     held activations                a counter, in stage chunks
//     memory                          a counter, where bytes are known
//
// Several steps are placed below each other, on one time axis.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "sim/analysis/conclusions.h"
#include "sim/analysis/idle.h"
#include "traces/files/file.h"
#include "traces/files/format.h"
#include "traces/json/json_string.h"
#include "traces/text/palette.h"
#include "traces/text/wording.h"
#include "traces/timelines/made_with.h"
#include "traces/timelines/perfetto_arrows.h"
#include "traces/timelines/perfetto_packets.h"
#include "traces/timelines/step_details.h"
#include "traces/timelines/trace_threads.h"

namespace bubblescope::traces {

namespace {

/// Tracks, processes and flows have numbers that are unique in the whole file.
struct Numbers {
  std::uint64_t track = 0;
  std::uint64_t flow = 0;
  std::int32_t process = 0;
};

/// A slice that has begun but not ended.
struct OpenSlice {
  Nanos end = 0;
  std::uint64_t track = 0;

  bool operator>(const OpenSlice& other) const {
    return std::pair(end, track) > std::pair(other.end, other.track);
  }
};

/// Writes one step with processes of its own.
class PerfettoStep {
 public:
  PerfettoStep(PerfettoPackets& packets, const ShownStep& step, Numbers& numbers)
      : packets_(packets),
        step_(step),
        record_(step.record),
        program_(step.record.program),
        numbers_(numbers),
        palette_(step.record.schedule),
        bounds_(find_step_bounds(step.record.timeline)),
        shift_(std::max<Nanos>(0, -bounds_.start)),
        critical_(program_.size(), false),
        gaps_(is_conclusive(record_.report) ? find_idle_gaps(program_, record_.timeline)
                                            : std::vector<IdleGap>()),
        waits_(program_, gaps_),
        flows_(program_, numbers.flow + 1) {
    for (const InstructionId id : record_.report.critical_path) critical_[id] = true;
  }
  PerfettoStep(const PerfettoStep&) = delete;
  PerfettoStep& operator=(const PerfettoStep&) = delete;

  void write(const std::string& command, bool alone) {
    write_step(command);
    describe_ranks(alone);
    write_slices();
    write_gaps();
    write_memory();
    numbers_.flow += program_.size();
  }

 private:
  /// Shifts a time so that none is negative; the viewer shows nothing before 0.
  Nanos at(Nanos time) const { return time + shift_; }

  std::uint64_t describe(const std::string& name, std::uint64_t parent, std::int32_t place) {
    packets_.describe({++numbers_.track, parent, name, place, 0, "", false});
    return numbers_.track;
  }

  std::uint64_t describe_process(const std::string& name) {
    const std::int32_t process = ++numbers_.process;
    packets_.describe({++numbers_.track, 0, name, process, process, "", false});
    return numbers_.track;
  }

  void write_step(const std::string& command) {
    const std::string name = fmt::format("{}: {}", step_.label, shape_text(record_.report.shape));
    const std::uint64_t process = describe_process(name);
    const std::uint64_t track = describe("step", process, 0);
    PerfettoSlice slice = packets_.slice(track, at(bounds_.start));
    slice.name(name);
    slice.category("step");
    annotate_step(slice, command);
    packets_.begin(slice);
    packets_.end(track, at(bounds_.end));
    write_critical_path(describe("critical path", process, 1));
  }

  void annotate_step(PerfettoSlice& slice, const std::string& command) {
    const BubbleReport& report = record_.report;
    slice.annotate("tool", "bubblescope " BUBBLESCOPE_VERSION);
    if (!command.empty()) slice.annotate("command", command);
    slice.annotate("schedule", record_.schedule->name);
    slice.annotate("source", record_.timeline.source);
    if (!record_.timeline.breakdown.empty())
      slice.annotate("breakdown", record_.timeline.breakdown);
    for (const auto& [key, value] : bubblescope::traces::describe(record_.made))
      slice.annotate(key, value);
    slice.annotate("makespan_ns", report.makespan);
    if (is_conclusive(report)) {
      slice.annotate("lower_bound_ns", report.lower_bound);
      slice.annotate("bubble_ratio", json_number(report.bubble->ratio));
      slice.annotate("bubble_overhead", json_number(report.bubble->overhead));
      slice.annotate("bubble_span_rate", json_number(report.bubble->span_rate));
    }
    if (shift_ != 0) slice.annotate("shifted_by_ns", shift_);
  }

  void write_critical_path(std::uint64_t track) {
    for (const InstructionId id : record_.report.critical_path) {
      const Instruction& instruction = program_.instructions[id];
      PerfettoSlice slice = packets_.slice(track, at(record_.timeline.start[id]));
      slice.name(to_string(instruction.op));
      slice.category(style_of(instruction.op.kind).category);
      slice.annotate("rank", std::int64_t{instruction.rank});
      packets_.begin(slice);
      packets_.end(track, at(record_.timeline.end[id]));
    }
  }

  void describe_ranks(bool alone) {
    threads_ = assign_threads(program_, record_.timeline);
    auto thread = threads_.threads.begin();
    for (std::int32_t rank = 0; rank < program_.ranks; ++rank) {
      const std::string name = fmt::format("rank {}", rank);
      const std::uint64_t process =
          describe_process(alone ? name : fmt::format("{}: {}", step_.label, name));
      for (; thread != threads_.threads.end() && thread->rank == rank; ++thread)
        thread_tracks_.push_back(describe(thread->name, process, thread->tid));
      // Placed after the lanes, however many there are.
      idle_tracks_.push_back(describe("idle", process, 1'000'000));
      describe_memory(process);
    }
  }

  void describe_memory(std::uint64_t process) {
    packets_.describe(
        {++numbers_.track, process, "held activations", 1'000'001, 0, "chunks", false});
    chunk_tracks_.push_back(numbers_.track);
    if (!has_bytes(record_.report.memory)) return;
    packets_.describe({++numbers_.track, process, "memory", 1'000'002, 0, "", true});
    byte_tracks_.push_back(numbers_.track);
  }

  /// Writes slices in order of time; those that end come before those that begin at the same time.
  void write_slices() {
    std::priority_queue<OpenSlice, std::vector<OpenSlice>, std::greater<>> open;
    const auto close_until = [&](Nanos time) {
      for (; !open.empty() && open.top().end <= time; open.pop())
        packets_.end(open.top().track, at(open.top().end));
    };
    for (const TraceSlice& slice : threads_.slices) {
      close_until(slice.start);
      begin_slice(slice);
      open.push({slice.end, thread_tracks_[slice.thread]});
    }
    close_until(bounds_.end);
  }

  void begin_slice(const TraceSlice& shown) {
    const Instruction& instruction = program_.instructions[shown.id];
    PerfettoSlice slice = packets_.slice(thread_tracks_[shown.thread], at(shown.start));
    const bool waits = instruction.role == Role::kWait;
    slice.name((waits ? "wait " : "") + to_string(instruction.op));
    slice.category(waits ? "wait" : style_of(instruction.op.kind).category);
    annotate_op(slice, shown.id);
    waits_.annotate(slice, shown.id);
    flows_.write(slice, shown.id);
    packets_.begin(slice);
  }

  void annotate_op(PerfettoSlice& slice, InstructionId id) {
    const Instruction& instruction = program_.instructions[id];
    const Op& op = instruction.op;
    slice.annotate("stage", std::int64_t{op.stage});
    if (has_microbatch(op.kind)) slice.annotate("microbatch", std::int64_t{op.microbatch});
    if (palette_.chunks() > 1) slice.annotate("chunk", std::int64_t{palette_.chunk(op)});
    if (record_.schedule->shape.slices > 1) slice.annotate("slice", std::int64_t{op.slice});
    if (id < record_.report.slack.size()) slice.annotate("slack_ns", record_.report.slack[id]);
    if (critical_[id]) slice.mark("critical");
    if (!is_message(op.kind)) return;
    const bool receives = is_recv(op.kind);
    slice.annotate("Src Rank", std::int64_t{receives ? instruction.peer : instruction.rank});
    slice.annotate("Dst Rank", std::int64_t{receives ? instruction.rank : instruction.peer});
    if (is_message(instruction) && id < step_.message_bytes.size())
      slice.annotate("bytes", step_.message_bytes[id]);
  }

  void write_gaps() {
    for (const IdleGap& gap : gaps_) {
      const std::uint64_t track = idle_tracks_[static_cast<std::size_t>(gap.rank)];
      PerfettoSlice slice = packets_.slice(track, at(gap.start));
      slice.repeated_name(name(gap.cause));
      slice.category("idle");
      if (gap.before) slice.annotate("before", to_string(program_.instructions[*gap.before].op));
      packets_.begin(slice);
      packets_.end(track, at(gap.end));
    }
  }

  void write_memory() {
    for (std::int32_t rank = 0; rank < program_.ranks; ++rank)
      count({bounds_.start, rank, kNoInstruction, {}});
    for (const MemoryPoint& point : find_memory_changes(record_)) count(point);
  }

  void count(const MemoryPoint& point) {
    const auto rank = static_cast<std::size_t>(point.rank);
    packets_.count(chunk_tracks_[rank], at(point.time),
                   chunks_of(point.held, record_.schedule->shape));
    if (!byte_tracks_.empty())
      packets_.count(byte_tracks_[rank], at(point.time),
                     std::int64_t{bytes_of(point.held, point.rank, record_.report.memory)});
  }

  PerfettoPackets& packets_;
  const ShownStep& step_;
  const StepRecord& record_;
  const Program& program_;
  Numbers& numbers_;
  Palette palette_;
  StepBounds bounds_;
  Nanos shift_;
  std::vector<bool> critical_;
  TraceThreads threads_;
  std::vector<IdleGap> gaps_;
  WaitsBefore waits_;
  MessageFlows flows_;
  std::vector<std::uint64_t> thread_tracks_;
  std::vector<std::uint64_t> idle_tracks_;  ///< [rank], as all that follow
  std::vector<std::uint64_t> chunk_tracks_;
  std::vector<std::uint64_t> byte_tracks_;
};

void write_perfetto(const ReportSet& report_set, const Sink& sink) {
  PerfettoPackets packets(sink);
  Numbers numbers;
  for (const ShownStep& step : report_set.steps)
    PerfettoStep(packets, step, numbers).write(report_set.command, report_set.steps.size() == 1);
  packets.flush();
}

const Registrar<TimelineFormat> perfetto_registrar{[] {
  return TimelineFormat{
      "perfetto",
      {"pftrace"},
      "Perfetto's protobuf (.gz by name), in exact nanoseconds: opens in ui.perfetto.dev",
      {},
      {".pftrace", ".perfetto-trace", ".pb"},
      write_perfetto};
}};

}  // namespace

}  // namespace bubblescope::traces
