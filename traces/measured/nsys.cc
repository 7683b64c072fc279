// Nsight Systems' sqlite export: NVTX ranges that name ops, or Megatron-LM's that name messages,
// and the kernels launched inside them.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "sim/ir/counted.h"
#include "traces/files/no_pipeline.h"
#include "traces/files/trace_format.h"
#include "traces/measured/name_rules.h"
#include "traces/measured/nsys_op_times.h"
#include "traces/measured/nsys_ops.h"
#include "traces/measured/nsys_outer_activities.h"
#include "traces/measured/nsys_process_ops.h"
#include "traces/measured/nsys_recording.h"
#include "traces/measured/seen_names.h"

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
    NsysOpFinder finder(recording_, names_, path_);
    for (const auto& [process, ranges] : of_process)
      add_process(process, finder.find(process, ranges));
    if (trace_.ops.empty()) refuse();
    for (const auto& [process, activities] : recording_.activities)
      if (!with_ops_.contains(process))
        doubt(
            fmt::format("{} ran {}, but has no range of an op: the ops of its rank are "
                        "missing",
                        name_process(path_, process), counted(std::ssize(activities), "kernel")));
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

  void add_process(std::int64_t process, const NsysProcessOps& found) {
    note_how_found(process, found);
    if (found.ops.empty()) return;
    const std::size_t first = trace_.ops.size();
    for (NsysTimedOp& timed : time_ops(recording_, process, found, path_)) {
      timed.op.recorder = recorder_of(process, found.ops[timed.range].named.rank);
      trace_.ops.push_back(timed.op);
    }
    const auto activities = find_nsys_outer_activities(recording_, process, found.marks,
                                                       std::span(trace_.ops).subspan(first));
    trace_.activities.insert(trace_.activities.end(), activities.begin(), activities.end());
    for (const StepRange& mark : found.marks)
      trace_.activities.push_back({.name = "step",
                                   .recorder = recorder_of(process, found.ops.front().named.rank),
                                   .step = mark.number,
                                   .is_whole_step = true,
                                   .start = mark.host.start,
                                   .end = mark.host.end});
    const std::vector<OpSpan> spans = find_op_spans(found.ops);
    for (const std::string& contradiction : find_device_contradictions(
             NsysProcess(recording_, process).record(), find_steps(spans), spans))
      doubt(name_process(path_, process) + ": " + contradiction);
  }

  void note_how_found(std::int64_t process, const NsysProcessOps& found) {
    if (found.unnumbered) doubt(name_process(path_, process) + ": " + *found.unnumbered);
    if (!found.ops.empty() || found.outside_steps > 0) with_ops_.insert(process);
    if (found.ops.empty() && found.outside_steps > 0)
      doubt(fmt::format("{}: none of its {} ops lies in a step: the ops of its rank are missing",
                        name_process(path_, process), found.outside_steps));
    if (found.overlap) overlaps_.insert(process);
    outside_steps_ += found.outside_steps;
    lie_between_messages_ = lie_between_messages_ || found.lie_between_messages;
    have_chunks_by_order_ = have_chunks_by_order_ || found.have_chunks_by_order;
    have_unnamed_backwards_ = have_unnamed_backwards_ || found.have_unnamed_backwards;
    are_uneven_ = are_uneven_ || found.are_uneven;
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
    if (lie_between_messages_)
      trace_.remarks.notes.emplace_back(
          "no op is named: forwards and backwards are what was launched between a receive and the "
          "next send, and micro-batches are counted in order");
    if (have_unnamed_backwards_)
      trace_.remarks.notes.emplace_back(
          "backwards have no range on some ranks: they are what other threads than the forwards' "
          "launched between two messages or forwards");
    if (have_chunks_by_order_)
      trace_.remarks.notes.emplace_back(
          "no message says which of its rank's stages it is for: they follow from the order of "
          "Megatron-LM's interleaved schedule in groups of as many micro-batches as ranks");
    const auto on_host =
        std::count_if(trace_.ops.begin(), trace_.ops.end(),
                      [](const ObservedOp& observed) { return observed.may_hold_waiting; });
    if (on_host > 0)
      doubt(
          fmt::format("{} launched no kernel: shown is the time of the range on the host, "
                      "which is not when a device computes",
                      counted(on_host, "op")));
    for (const std::int64_t process : overlaps_)
      doubt(
          fmt::format("{}: ranges of ops overlap, so that their kernels may be taken for those of "
                      "another op",
                      name_process(path_, process)));
    if (are_uneven_)
      doubt(path_ +
            ": some ops were seen more often than others: ranges are missing, or were "
            "renamed, and steps begin where an op runs again");
    if (recording_.unclosed > 0)
      doubt(fmt::format("{}: {} without an end left out", path_,
                        counted(static_cast<std::int64_t>(recording_.unclosed), "range")));
    if (outside_steps_ > 0)
      trace_.remarks.notes.push_back(
          fmt::format("{}: {} left out, which lie in no step", path_,
                      counted(static_cast<std::int64_t>(outside_steps_), "op")));
  }

  void doubt(std::string text) { trace_.remarks.doubts.push_back(std::move(text)); }

  [[noreturn]] void refuse() const {
    if (outside_steps_ > 0)
      throw NoPipeline(fmt::format(
          "{}: none of its {} ops lies in a step; correct the rule whose kind is 'step'", path_,
          outside_steps_));
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
  std::size_t outside_steps_ = 0;
  bool lie_between_messages_ = false;
  bool have_chunks_by_order_ = false;
  bool are_uneven_ = false;
  bool have_unnamed_backwards_ = false;
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
