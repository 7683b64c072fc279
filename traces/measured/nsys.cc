// Nsight Systems' sqlite export: NVTX ranges that name ops, or Megatron-LM's that name messages,
// and the kernels launched inside them.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "sim/ir/depend.h"
#include "sim/ir/error.h"
#include "traces/files/no_pipeline.h"
#include "traces/files/trace_format.h"
#include "traces/measured/interleaved_calls.h"
#include "traces/measured/message_ranges.h"
#include "traces/measured/name_rules.h"
#include "traces/measured/nsys_messages.h"
#include "traces/measured/nsys_ops.h"
#include "traces/measured/nsys_outer_activities.h"
#include "traces/measured/nsys_ranges.h"
#include "traces/measured/nsys_recording.h"
#include "traces/measured/seen_names.h"
#include "traces/measured/unnumbered_ranges.h"

namespace bubblescope::traces {

namespace {

class NsysReader {
 public:
  explicit NsysReader(const TraceInput& input) : path_(input.path), names_(input.rules) {}

  ObservedTrace read() && {
    trace_.source = {.name = "nsys", .may_mark_steps = true, .may_begin_apart = true};
    recording_ = read_nsys(path_, [this](std::string_view name) { return matters(name); });
    std::map<std::int64_t, std::vector<HostRange>> of_process;
    for (const HostRange& range : recording_.ranges)
      of_process[process_of(range.thread)].push_back(range);
    for (const auto& [process, ranges] : of_process) add_process(process, ranges);
    if (trace_.ops.empty()) refuse();
    for (const auto& [process, activities] : recording_.activities)
      if (!with_ops_.contains(process))
        doubt(
            fmt::format("{} ran {} kernel(s), but has no range of an op: the ops of its rank are "
                        "missing",
                        where(process), activities.size()));
    add_notes();
    return std::move(trace_);
  }

 private:
  bool matters(std::string_view name) {
    const NameMeaning& meaning = names_.find(name);
    if (meaning.op || meaning.is_step) return true;
    if (meaning.is_ruled) return false;
    if (parse_pair_name(name) || parse_message_call(name) || parse_step_mark(name)) return true;
    seen_.add(name);
    return false;
  }

  std::string where(std::int64_t process) const {
    return fmt::format("{}: process {}", path_, (process >> 24) & 0xffffff);
  }

  void add_process(std::int64_t process, const std::vector<HostRange>& ranges) {
    std::vector<OpRange> ops = named_ops(process, ranges);
    const std::vector<TimedCall> calls = named_calls(ranges);
    const auto computes = [](const OpRange& op) { return is_compute(op.named.op.kind); };
    const auto no_chunk = [](const OpRange& op) { return op.named.may_have_chunk; };
    const bool lack_chunks =
        are_interleaved(calls) && std::all_of(ops.begin(), ops.end(), no_chunk);
    if (lack_chunks || std::none_of(ops.begin(), ops.end(), computes))
      ops = ops_between_messages(process, ranges);
    else if (!calls.empty())
      find_received_calls(ops, calls);
    if (ops.empty()) return;
    with_ops_.insert(process);
    assign_steps(ops, ranges);
    const std::vector<StepRange> marks = mark_steps(recording_, ranges, ops);
    Device device{NsysProcess(recording_, process), NsysMessages(recording_, process, ops, calls)};
    const std::size_t first = trace_.ops.size();
    for (std::size_t at = 0; at < ops.size(); ++at) add(ops[at], at, device);
    const auto activities = find_nsys_outer_activities(recording_, process, marks,
                                                       std::span(trace_.ops).subspan(first));
    trace_.activities.insert(trace_.activities.end(), activities.begin(), activities.end());
    for (const StepRange& mark : marks)
      trace_.activities.push_back({.name = "step",
                                   .recorder = recorder_of(process, ops.front().named.rank),
                                   .step = mark.number,
                                   .is_whole_step = true,
                                   .start = mark.host.start,
                                   .end = mark.host.end});
    const std::vector<OpSpan> spans = find_op_spans(ops);
    for (const std::string& found :
         find_device_contradictions(device.activities.record(), find_steps(spans), spans))
      doubt(where(process) + ": " + found);
  }

  /// The ranges that name ops. A range within another one of the same op is that op again.
  std::vector<OpRange> named_ops(std::int64_t process, const std::vector<HostRange>& ranges) {
    std::vector<OpRange> all;
    UnnumberedRanges found;
    for (const HostRange& range : ranges) {
      const std::string& name = recording_.names[range.name];
      OpRange op{range.thread, {range.start, range.end}, {}};
      if (const std::optional<NamedOp> named = names_.find(name).op) {
        op.named = *named;
      } else if (const auto pair = parse_pair_name(name)) {
        op.named.op = pair->front();
        op.second = pair->back();
      } else {
        continue;
      }
      all.push_back(op);
      if (is_compute(op.named.op.kind)) found.add(op.host, !is_unnumbered(op), name);
    }
    if (found.any_numbered()) {
      std::erase_if(all, is_unnumbered);
      if (const auto outside = found.describe()) doubt(where(process) + ": " + *outside);
    }
    std::vector<OpRange> ops;
    for (const OpRange& op : all) {
      const bool is_inner = !ops.empty() && op.host.end <= ops.back().host.end;
      if (is_inner && is_same_op(ops.back(), op)) continue;
      if (!ops.empty() && op.host.start < ops.back().host.end && is_compute(op.named.op.kind) &&
          is_compute(ops.back().named.op.kind))
        overlaps_.insert(process);
      ops.push_back(op);
    }
    set_kinds(ops);
    if (find_unnamed_backwards(recording_, process, ops)) unnamed_backwards_ = true;
    return ops;
  }

  std::vector<TimedCall> named_calls(const std::vector<HostRange>& ranges) const {
    std::vector<TimedCall> calls;
    for (const HostRange& range : ranges)
      if (const auto call = parse_message_call(recording_.names[range.name]))
        calls.push_back({*call, range.start, range.end});
    return calls;
  }

  std::vector<OpRange> ops_between_messages(std::int64_t process,
                                            const std::vector<HostRange>& ranges) {
    std::map<std::int64_t, std::vector<HostRange>> by_thread;
    for (const HostRange& range : ranges)
      if (parse_message_call(recording_.names[range.name]))
        by_thread[range.thread].push_back(range);
    if (by_thread.empty()) return {};
    if (by_thread.size() > 1)
      throw Error(
          fmt::format("{}: {} threads have messages, so that what lies between them cannot "
                      "be distinguished; annotate the ops",
                      where(process), by_thread.size()));
    const std::int64_t thread = by_thread.begin()->first;
    const std::vector<TimedCall> calls = named_calls(by_thread.begin()->second);
    between_messages_ = true;
    if (are_interleaved(calls)) return ops_of_chunks(process, thread, calls);
    std::vector<OpRange> ops;
    for (const BetweenCalls& found : find_ops_between(calls, where(process))) {
      OpRange op{thread, {found.start, found.end}, {{}, false, false}};
      op.named.op.kind = found.kind;
      op.received = {calls[found.received].start, calls[found.received].end};
      ops.push_back(op);
    }
    return ops;
  }

  /// The calls of all processes together say which chunks their ops run.
  void find_chunks() {
    std::map<std::int64_t, std::vector<TimedCall>> calls;
    for (const HostRange& range : recording_.ranges)
      if (const auto call = parse_message_call(recording_.names[range.name]))
        calls[process_of(range.thread)].push_back({*call, range.start, range.end});
    chunks_ = find_interleaved_ops(calls, path_);
  }

  std::vector<OpRange> ops_of_chunks(std::int64_t process, std::int64_t thread,
                                     const std::vector<TimedCall>& calls) {
    if (chunks_.empty()) find_chunks();
    std::vector<OpRange> ops;
    for (const CalledOps& found : chunks_.at(process)) {
      OpRange op{thread, {found.start, found.end}, {found.op}, found.backward};
      op.named.step = found.step;
      if (found.received) op.received = {calls[*found.received].start, calls[*found.received].end};
      ops.push_back(op);
    }
    return ops;
  }

  /// Finds the steps by the number that the name states, by the range of a step, or by occurrence.
  void assign_steps(std::vector<OpRange>& ops, const std::vector<HostRange>& ranges) {
    std::vector<std::pair<TimeSpan, std::int64_t>> marks;
    for (const HostRange& range : ranges)
      if (const NameMeaning& meaning = names_.find(recording_.names[range.name]); meaning.is_step)
        marks.push_back({{range.start, range.end}, meaning.step.value_or(std::ssize(marks))});
    if (!marks.empty()) {
      const std::size_t count = ops.size();
      std::erase_if(ops, [&](OpRange& op) {
        const auto mark = std::find_if(marks.begin(), marks.end(), [&](const auto& at) {
          return op.host.start >= at.first.start && op.host.start <= at.first.end;
        });
        if (mark != marks.end()) op.step = mark->second;
        return mark == marks.end();
      });
      outside_steps_ += count - ops.size();
      return;
    }
    if (!ops.empty() && ops.front().named.step) {
      for (OpRange& op : ops) op.step = op.named.step.value_or(0);
    } else if (!ops.empty() && is_unnumbered(ops.front())) {
      count_unnumbered(ops);
    } else {
      uneven_ = !count_occurrences(ops) || uneven_;
    }
  }

  /// The device of one process, while its ops are walked through.
  struct Device {
    NsysProcess activities;
    NsysMessages messages;
    Nanos free = std::numeric_limits<Nanos>::min();  ///< when the op before the next one has ended
  };

  void add(const OpRange& range, std::size_t at, Device& device) {
    if (range.second) return add_pair(range, at, device);
    ObservedOp observed = observe(range);
    const bool computes = is_compute(range.named.op.kind);
    const std::optional<TimeSpan> span = computes ? device.activities.find_work(range.host)
                                                  : device.activities.find_messages(range.host);
    // Nothing shows when such a message was in transit.
    if (!span && !computes && device.activities.has_activities()) return;
    if (!span && computes) {
      ++on_host_;
      observed.may_hold_waiting = true;
    }
    if (span) set_times(observed, *span);
    keep(observed, range);
    if (span && computes) add_arrival(observed, range, at, device);
  }

  ObservedOp observe(const OpRange& range) {
    ObservedOp observed;
    observed.op = range.named.op;
    if (!range.named.has_stage) observed.chunk = range.named.chunk.value_or(0);
    observed.chunk_is_assumed = range.named.may_have_chunk;
    observed.numbered = range.named.has_microbatch;
    observed.step = range.step;
    observed.step_is_counted = range.step_is_counted;
    observed.has_step = range.has_step;
    observed.mark = range.mark;
    set_times(observed, range.host);
    return observed;
  }

  static void set_times(ObservedOp& observed, const TimeSpan& span) {
    observed.start = span.start;
    observed.end = std::max(span.start, span.end);
  }

  void keep(ObservedOp& observed, const OpRange& range) {
    observed.recorder = recorder_of(process_of(range.thread), range.named.rank);
    trace_.ops.push_back(observed);
  }

  /// The message that brought an op's input: as its call says, or the device waited for it.
  void add_arrival(const ObservedOp& op, const OpRange& range, std::size_t at, Device& device) {
    const TimeSpan waiting{std::exchange(device.free, op.end), op.start};
    const std::optional<OpKind> receive = find_receive(op.op.kind);
    if (!receive) return;
    ObservedOp arrival = op;
    arrival.op.kind = *receive;
    const bool has_call = range.received.end > range.received.start;
    if (const auto message =
            has_call ? device.activities.find_messages(range.received) : std::nullopt) {
      set_times(arrival, *message);
    } else if (const auto awaited = device.messages.find_awaited(at, waiting)) {
      set_times(arrival, awaited->span);
      arrival.is_inferred = awaited->is_inferred;
    } else {
      return;
    }
    arrival.is_arrival = true;
    keep(arrival, range);
  }

  /// Splits a pair at the first launch of the autograd engine, which runs the backward.
  void add_pair(const OpRange& range, std::size_t at, Device& device) {
    const NsysProcess& activities = device.activities;
    const auto split = activities.first_launch_by_others(range.host, range.thread);
    const auto forward =
        split ? activities.find_work({range.host.start, *split}, LaunchedBy::kOwn, range.thread)
              : std::nullopt;
    const auto backward = activities.find_work(range.host, LaunchedBy::kOthers, range.thread);
    if (!forward || !backward)
      throw Error(fmt::format(
          "{}: '({};{})' is one range for two ops, and no launch within it shows where the forward "
          "ends and the backward begins; give each op a range of its own",
          path_, to_string(range.named.op), to_string(*range.second)));
    ObservedOp observed = observe(range);
    set_times(observed, *forward);
    keep(observed, range);
    add_arrival(observed, range, at, device);
    observed.op = *range.second;
    set_times(observed, *backward);
    keep(observed, range);
    device.free = observed.end;
  }

  /// A process is a rank, unless a rule states the rank. All processes of a file share one clock.
  std::int32_t recorder_of(std::int64_t process, std::optional<std::int32_t> rank) {
    const auto [found, is_new] =
        recorders_.emplace(std::pair(rank ? 0 : process, rank.value_or(-1)),
                           static_cast<std::int32_t>(recorders_.size()));
    if (is_new) trace_.recorders.push_back({path_, rank, path_});
    return found->second;
  }

  void add_notes() {
    if (between_messages_)
      trace_.remarks.notes.emplace_back(
          "no op is named: forwards and backwards are what was launched between a receive and the "
          "next send, and micro-batches are counted in order");
    if (unnamed_backwards_)
      trace_.remarks.notes.emplace_back(
          "backwards have no range on some ranks: they are what other threads than the forwards' "
          "launched between two messages or forwards");
    if (!chunks_.empty())
      trace_.remarks.notes.emplace_back(
          "no message says which of its rank's stages it is for: they follow from the order of "
          "Megatron-LM's interleaved schedule in groups of as many micro-batches as ranks");
    if (on_host_ > 0)
      doubt(
          fmt::format("{} op(s) launched no kernel: shown is the time of their range on the host, "
                      "which is not when a device computes",
                      on_host_));
    for (const std::int64_t process : overlaps_)
      doubt(
          fmt::format("{}: ranges of ops overlap, so that their kernels may be taken for those of "
                      "another op",
                      where(process)));
    if (uneven_)
      doubt(path_ +
            ": some ops were seen more often than others: ranges are missing, or were "
            "renamed, and steps begin where an op runs again");
    if (recording_.unclosed > 0)
      doubt(
          fmt::format("{}: {} range(s) have no end and were left out", path_, recording_.unclosed));
    if (outside_steps_ > 0)
      trace_.remarks.notes.push_back(
          fmt::format("{}: {} op(s) left out, which lie in no step", path_, outside_steps_));
  }

  void doubt(std::string text) { trace_.remarks.doubts.push_back(std::move(text)); }

  [[noreturn]] void refuse() const {
    throw NoPipeline(
        fmt::format("{}: there is no NVTX range that names a pipeline op; give each op a "
                    "range such as 'PP:0F3' and export it with 'nsys export --type sqlite'{}",
                    path_, seen_.describe()));
  }

  std::string path_;
  NameMatcher names_;
  SeenNames seen_;
  NsysRecording recording_;
  std::map<std::pair<std::int64_t, std::int32_t>, std::int32_t> recorders_;  ///< [process, rank]
  std::set<std::int64_t> with_ops_;
  std::set<std::int64_t> overlaps_;
  std::size_t on_host_ = 0;
  std::size_t outside_steps_ = 0;
  bool between_messages_ = false;
  std::map<std::int64_t, std::vector<CalledOps>> chunks_;  ///< [process]
  bool uneven_ = false;
  bool unnamed_backwards_ = false;
  ObservedTrace trace_;
};

const Registrar<TraceFormat> nsys_registrar{[] {
  return TraceFormat{
      "nsys",
      {"sqlite"},
      "Nsight Systems' sqlite export with NVTX ranges that name ops, or Megatron-LM's messages",
      [](std::string_view first_bytes) { return first_bytes.starts_with("SQLite format 3"); },
      [](const TraceInput& input) { return NsysReader(input).read(); }};
}};

}  // namespace

}  // namespace bubblescope::traces
