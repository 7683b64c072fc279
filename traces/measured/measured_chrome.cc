// Reads Chrome traces of other programs: those of StragglerAnalysis, and any trace whose slices
// have args.op.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "sim/ir/error.h"
#include "traces/files/no_pipeline.h"
#include "traces/files/trace_format.h"
#include "traces/measured/chrome_activities.h"
#include "traces/measured/chrome_events.h"
#include "traces/measured/chrome_ops.h"
#include "traces/measured/chrome_recorders.h"
#include "traces/measured/counted_steps.h"
#include "traces/measured/measured_profile.h"
#include "traces/measured/merged_profiles.h"
#include "traces/measured/op_names.h"
#include "traces/measured/own_chrome.h"
#include "traces/measured/step_marks.h"
#include "traces/measured/step_ranges.h"
#include "traces/measured/tensor_peers.h"
#include "traces/schedules/cell.h"

namespace bubblescope::traces {

namespace {

/// Whether backwards are input gradients, beside weight gradients of their own.
bool split_backwards(const std::vector<std::optional<NamedOp>>& named) {
  const auto has = [&](OpKind kind) {
    return std::any_of(named.begin(), named.end(),
                       [&](const std::optional<NamedOp>& op) { return op && op->op.kind == kind; });
  };
  return has(OpKind::kWeightGrad) && !has(OpKind::kInputGrad);
}

class Reader {
 public:
  Reader(ChromeEvents events, std::string file, NameMatcher& names)
      : events_(std::move(events)),
        file_(std::move(file)),
        named_(take_ops(names)),
        recorders_(events_, named_, file_),
        splits_backward_(split_backwards(named_)) {
    trace_.remarks = recorders_.remarks();
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  ObservedTrace read() && {
    trace_.source = {.name = "chrome",
                     .has_only_sent_messages = true,
                     .numbers_files_apart = true,
                     .has_any_slices = true,
                     .has_micros = true};
    for (std::size_t at = 0; at < named_.size(); ++at) add(at);
    if (trace_.ops.empty()) refuse();
    trace_.ops = with_counted_steps(std::move(trace_.ops), counted_);
    add_activities();
    add_marks();
    trace_.recorders = recorders_.recorders();
    if (has_tensor_duplicates_) trace_.remarks.notes.emplace_back(kFirstOfTensorRanks);
    if (events_.negative_durations > 0) {
      trace_.remarks.doubts.push_back(describe_negative_durations(events_.negative_durations));
      trace_.remarks.notes.push_back(trace_.remarks.doubts.back());
    }
    return std::move(trace_);
  }

 private:
  /// The ops that slices state. Slices that only have the name of one join the others.
  std::vector<std::optional<NamedOp>> take_ops(NameMatcher& names) {
    FoundOps found = find_ops(events_.slices, names);
    for (const std::size_t at : found.not_ops) events_.other_slices.add(events_.slices[at]);
    return std::move(found.ops);
  }

  void add(std::size_t at) {
    const ChromeSlice& slice = events_.slices[at];
    const std::optional<NamedOp>& named = named_[at];
    if (!named && parse_pair_name(slice.name)) refuse_pair(slice);
    if (!named || is_tensor_duplicate(slice.thread)) return;
    const ChromePlace place = recorders_.find(at);
    ObservedOp observed;
    observed.op = named->op;
    observed.start = slice.start;
    observed.end = slice.end;
    observed.recorder = place.recorder;
    observed.replica = place.replica;
    if (!named->has_stage) observed.chunk = named->chunk ? named->chunk : chunk_of(slice.chunk);
    if (!named->has_microbatch) number(observed, slice);
    observed.chunk_is_assumed = observed.chunk && !named->chunk && !slice.chunk;
    observed.op.kind = kind_in_trace(*named, splits_backward_);
    std::optional<std::int64_t> step = named->step ? named->step : slice.step;
    states_steps_ = states_steps_ || step.has_value();
    if (!step) {
      step = marks_of(events_.threads[slice.thread].process).step_at(slice.start);
      uses_marks_ = uses_marks_ || step.has_value();
    }
    if (!step && !observed.numbered && is_compute(observed.op.kind)) refuse_unnumbered(slice);
    observed.step = step.value_or(0);
    if (!step) counted_.push_back(trace_.ops.size());
    shown_.emplace(events_.threads[slice.thread].process, place);
    activities_.add_op(slice, observed);
    trace_.ops.push_back(observed);
  }

  /// Adds work that belongs to a step but is not an op, on the ranks that are shown.
  void add_activities() {
    for (const OtherSlice& slice : events_.other_slices.all())
      if (states_place(slice) && !is_tensor_duplicate(slice.thread))
        add_activity(activity_of(slice), slice);
    for (const OtherSlice& slice : list_outer_first(events_.other_slices)) {
      if (states_place(slice) || is_tensor_duplicate(slice.thread)) continue;
      std::optional<ObservedActivity> activity = activities_.find(slice);
      if (activity && find_step(*activity, slice)) add_activity(*std::move(activity), slice);
      if (std::optional<ObservedActivity> around = activities_.find_around_ops(slice))
        around_ops_.push_back(*std::move(around));
    }
    if (StepMarks(events_).marks().empty())
      trace_ = with_step_ranges(std::move(trace_), std::exchange(around_ops_, {}));
    if (std::optional<std::string> unplaced = activities_.describe_unplaced())
      trace_.remarks.notes.push_back(fmt::format("{}: {}", file_, *unplaced));
    if (activities_.lack_ranks())
      trace_.remarks.doubts.push_back(fmt::format(
          "{}: nothing says of which rank its slices are that are not ops, so the whole step may "
          "be longer than the time of the pipeline's ops; state args.rank or args.pp_rank of all",
          file_));
  }

  /// Whether the name of its thread states its rank, and an argument its step.
  bool states_place(const OtherSlice& slice) const {
    return recorders_.is_named(slice.thread) && events_.other_slices.numbers_of(slice).step;
  }

  void add_activity(ObservedActivity activity, const OtherSlice& slice) {
    const std::optional<std::int64_t>& chunk = events_.other_slices.numbers_of(slice).chunk;
    if (chunk && *chunk >= 0) activity.chunk = chunk_of(chunk);
    trace_.activities.push_back(std::move(activity));
  }

  /// Returns the activity of a slice that states its rank and its step.
  ObservedActivity activity_of(const OtherSlice& slice) {
    const SliceNumbers& numbers = events_.other_slices.numbers_of(slice);
    const ChromePlace place = *recorders_.find_by_thread(slice.thread);
    return {.name = events_.other_slices.name_of(slice),
            .recorder = place.recorder,
            .replica = place.replica,
            .step = *numbers.step,
            .start = slice.start,
            .end = slice.end,
            .runs_between_ops = activities_.shares_thread(slice),
            .has_microbatch = numbers.has_microbatch};
  }

  /// Gives an activity its step, in the same way as ops; it follows from the ops around it if
  /// nothing says it. False outside of all steps that are marked.
  bool find_step(ObservedActivity& activity, const OtherSlice& slice) {
    std::optional<std::int64_t> step =
        states_steps_ ? events_.other_slices.numbers_of(slice).step : std::nullopt;
    if (!step && uses_marks_) {
      step = marks_of(events_.threads[slice.thread].process).step_at(slice.start);
      if (!step) return false;
    }
    activity.has_step = step.has_value();
    activity.step = step.value_or(0);
    return true;
  }

  /// Returns the steps that a process marks, or those of all processes where it marks none.
  const StepMarks& marks_of(const std::string& process) {
    const auto [found, is_new] = marks_.try_emplace(process);
    if (!is_new) return found->second;
    found->second = StepMarks(events_, process);
    if (found->second.marks().empty()) found->second = StepMarks(events_);
    return found->second;
  }

  /// A process that marks steps and runs ops marks the steps of its replica.
  void add_marks() {
    for (const auto& [process, place] : shown_)
      for (const ProfiledEvent& mark : marks_of(process).marks())
        trace_.activities.push_back({.name = "step",
                                     .recorder = place.recorder,
                                     .replica = place.replica,
                                     .step = mark.number,
                                     .is_whole_step = true,
                                     .start = mark.start,
                                     .end = mark.end});
  }

  [[noreturn]] void refuse_pair(const ChromeSlice& slice) const {
    throw Error(fmt::format(
        "{}: '{}' is one slice for two ops, and nothing shows where the forward ends and the "
        "backward begins; give each op a slice of its own",
        file_, slice.name));
  }

  /// Refuses slices without a step, because they are ambiguous: the n-th op of a rank may be
  /// micro-batch n of one step, or one micro-batch of step n.
  [[noreturn]] void refuse_unnumbered(const ChromeSlice& slice) const {
    throw Error(fmt::format(
        "{}: the op '{}' states neither its micro-batch (args.mb_id) nor its step (args.step), so "
        "micro-batches and steps cannot be distinguished; give one of them",
        file_, slice.name));
  }

  bool is_tensor_duplicate(std::uint32_t thread) {
    const bool is_duplicate = recorders_.is_tensor_duplicate(thread);
    has_tensor_duplicates_ = has_tensor_duplicates_ || is_duplicate;
    return is_duplicate;
  }

  static std::int32_t chunk_of(const std::optional<std::int64_t>& chunk) {
    return static_cast<std::int32_t>(std::clamp<std::int64_t>(chunk.value_or(0), 0, 1023));
  }

  static void number(ObservedOp& observed, const ChromeSlice& slice) {
    const std::int64_t microbatch = slice.microbatch.value_or(-1);
    observed.numbered = is_compute(observed.op.kind) && microbatch >= 0;
    if (observed.numbered)
      observed.op.microbatch =
          static_cast<std::int32_t>(std::min<std::int64_t>(microbatch, kMaxMicrobatch));
  }

  [[noreturn]] void refuse() const {
    if (const std::string none = describe_missing_list(events_); !none.empty())
      throw NoPipeline(file_ + ": " + none);
    const std::string others = describe_left_out(events_);
    throw NoPipeline(fmt::format(
        "{}: there is no pipeline op in this trace{}; name each op in its trace, as PyTorch's "
        "pipelining does ('PP:0F3', by record_function or an NVTX range), or give args.op{}",
        file_, others.empty() ? "" : " (it has " + others + ")", events_.names.describe()));
  }

  ChromeEvents events_;
  std::string file_;
  std::vector<std::optional<NamedOp>> named_;  ///< [slice]
  ChromeRecorders recorders_;
  bool splits_backward_;
  std::map<std::string, StepMarks> marks_;    ///< by process
  std::map<std::string, ChromePlace> shown_;  ///< of the first op of a process
  ChromeActivities activities_{events_};
  std::vector<ObservedActivity> around_ops_;  ///< slices that contain some
  bool states_steps_ = false;
  bool uses_marks_ = false;  ///< for steps that nothing states
  bool has_tensor_duplicates_ = false;
  std::vector<std::size_t> counted_;  ///< ops in `trace_` whose step nothing states
  ObservedTrace trace_;
};

/// Reads a profile of PyTorch, or several that were merged into one file.
ObservedTrace read_profiles(ChromeEvents events, const std::string& file, NameMatcher& names) {
  std::vector<ChromeEvents> profiles = separate_profiles(std::move(events), file);
  if (profiles.size() == 1) return read_profile(std::move(profiles[0]), file, names);
  ObservedTrace trace;
  for (std::size_t at = 0; at < profiles.size(); ++at)
    append(trace, read_profile(std::move(profiles[at]), fmt::format("{}, process {}", file, at + 1),
                               names));
  trace.remarks.notes.push_back(
      fmt::format("{}: it holds the profiles of {} processes, each of which counts as a rank", file,
                  profiles.size()));
  return trace;
}

ObservedTrace read_chrome(const TraceInput& input) {
  NameMatcher names(input.rules);
  ChromeEvents events = read_chrome_events(input.text, input.path, names);
  if (is_own_trace(events)) {
    ObservedTrace trace;
    trace.steps.push_back(read_own_trace(events, input.path));
    return trace;
  }
  if (events.is_kineto) return read_profiles(std::move(events), input.path, names);
  return Reader(std::move(events), input.path, names).read();
}

const Registrar<TraceFormat> chrome_registrar{[] {
  return TraceFormat{"chrome",
                     {"kineto"},
                     "Chrome json: ours, PyTorch's profiler with named ops, StragglerAnalysis",
                     is_chrome_trace,
                     read_chrome};
}};

}  // namespace

}  // namespace bubblescope::traces
