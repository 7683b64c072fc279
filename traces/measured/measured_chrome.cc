// Reads Chrome traces of other programs: those of StragglerAnalysis, and any trace whose slices
// have args.op.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/ir/error.h"
#include "traces/files/no_pipeline.h"
#include "traces/files/trace_format.h"
#include "traces/measured/chrome_activities.h"
#include "traces/measured/chrome_events.h"
#include "traces/measured/chrome_ops.h"
#include "traces/measured/chrome_ranks.h"
#include "traces/measured/chrome_replicas.h"
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

/// The place of a thread in the pipeline, if its name states it: "PP rank 3, TP rank 0, compute".
struct PipelinePlace {
  std::int32_t pp = 0;
  std::int32_t tp = 0;
};

std::optional<std::int32_t> parse_number_after(std::string_view text, std::string_view word) {
  const std::size_t at = text.find(word);
  if (at == text.npos) return {};
  text.remove_prefix(at + word.size());
  std::int32_t number = 0;
  const auto [last, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (fault != std::errc{} || last == text.data() || number < 0) return {};
  return number;
}

std::optional<PipelinePlace> place_of(const std::string& thread_name) {
  const std::optional<std::int32_t> pp = parse_number_after(thread_name, "PP rank ");
  if (!pp) return {};
  return PipelinePlace{*pp, parse_number_after(thread_name, "TP rank ").value_or(0)};
}

/// Numbers keys in order of appearance.
template <class Key>
class Numbering {
 public:
  std::int32_t operator()(const Key& key) {
    return numbers_.emplace(key, static_cast<std::int32_t>(numbers_.size())).first->second;
  }
  bool has(const Key& key) const { return numbers_.contains(key); }

 private:
  std::map<Key, std::int32_t> numbers_;
};

class Reader {
 public:
  Reader(ChromeEvents events, std::string file, NameMatcher& names)
      : events_(std::move(events)), file_(std::move(file)) {
    for (const ChromeThread& thread : events_.threads) places_.push_back(place_of(thread.name));
    for (std::size_t at = 0; at < places_.size(); ++at)
      if (places_[at]) {
        const auto [first, is_new] = first_tp_.emplace(
            std::pair(events_.threads[at].process, places_[at]->pp), places_[at]->tp);
        if (!is_new) first->second = std::min(first->second, places_[at]->tp);
      }
    FoundOps found = find_ops(events_.slices, names);
    for (const std::size_t at : found.not_ops) events_.other_slices.add(events_.slices[at]);
    named_ = std::move(found.ops);
    bool names_input_grads = false;  // then a backward beside them is a whole one
    for (const std::optional<NamedOp>& named : named_) {
      splits_backward_ = splits_backward_ || (named && named->op.kind == OpKind::kWeightGrad);
      names_input_grads = names_input_grads || (named && named->op.kind == OpKind::kInputGrad);
    }
    splits_backward_ = splits_backward_ && !names_input_grads;
  }

  ObservedTrace read() && {
    trace_.source = {.name = "chrome",
                     .has_only_sent_messages = true,
                     .numbers_files_apart = true,
                     .has_any_slices = true,
                     .has_micros = true};
    number_replicas();
    find_ranks();
    for (std::size_t at = 0; at < named_.size(); ++at) add(events_.slices[at], named_[at]);
    if (trace_.ops.empty()) refuse();
    trace_.ops = with_counted_steps(std::move(trace_.ops), counted_);
    add_activities();
    add_marks();
    note_tensor_ranks();
    if (events_.negative_durations > 0) {
      trace_.remarks.doubts.push_back(describe_negative_durations(events_.negative_durations));
      trace_.remarks.notes.push_back(trace_.remarks.doubts.back());
    }
    return std::move(trace_);
  }

 private:
  /// Orders pids numerically where they are numbers: "10" follows "9".
  void number_replicas() {
    std::map<std::pair<std::size_t, std::string>, int> pids;
    for (std::size_t at = 0; at < places_.size(); ++at)
      if (places_[at]) {
        const std::string& pid = events_.threads[at].process;
        pids[{pid.size(), pid}] = 0;
      }
    for (const auto& [pid, _] : pids) replica_(pid.second);
  }

  /// Finds the replicas of the ops to which no thread's name gives one, and the ranks of those to
  /// which no rule gives one either.
  void find_ranks() {
    std::vector<ChromeOp> all;
    for (std::size_t at = 0; at < named_.size(); ++at)
      if (const ChromeSlice& slice = events_.slices[at]; named_[at] && !places_[slice.thread])
        all.push_back({&slice, *named_[at]});
    const std::vector<std::int32_t> replicas = find_stated_replicas(events_, all, file_);
    std::vector<ChromeOp> ops;
    std::vector<std::int32_t> of_ops;
    for (std::size_t at = 0; at < all.size(); ++at) {
      if (!replicas.empty()) stated_[all[at].slice] = replicas[at];
      if (all[at].named.rank) continue;
      ranked_[all[at].slice] = ops.size();
      ops.push_back(all[at]);
      if (!replicas.empty()) of_ops.push_back(replicas[at]);
    }
    ranks_ = find_chrome_ranks(events_, ops, of_ops, file_);
    trace_.remarks = ranks_.remarks;
  }

  void add(const ChromeSlice& slice, const std::optional<NamedOp>& named) {
    if (!named && parse_pair_name(slice.name)) refuse_pair(slice);
    if (!named || is_tensor_duplicate(slice.thread)) return;
    ObservedOp observed;
    observed.op = named->op;
    observed.start = slice.start;
    observed.end = slice.end;
    observed.recorder = recorder_of(slice, named->rank);
    const std::optional<PipelinePlace>& place = places_[slice.thread];
    if (place)
      observed.replica = replica_(events_.threads[slice.thread].process);
    else if (const auto ranked = ranked_.find(&slice); ranked != ranked_.end())
      observed.replica = ranks_.replica_of[ranks_.recorder_of[ranked->second]];
    else if (const auto stated = stated_.find(&slice); stated != stated_.end())
      observed.replica = stated->second;
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
    shown_.emplace(events_.threads[slice.thread].process,
                   std::pair(observed.recorder, observed.replica));
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
    return places_[slice.thread] && events_.other_slices.numbers_of(slice).step;
  }

  void add_activity(ObservedActivity activity, const OtherSlice& slice) {
    const std::optional<std::int64_t>& chunk = events_.other_slices.numbers_of(slice).chunk;
    if (chunk && *chunk >= 0) activity.chunk = chunk_of(chunk);
    trace_.activities.push_back(std::move(activity));
  }

  /// Returns the activity of a slice that states its rank and its step.
  ObservedActivity activity_of(const OtherSlice& slice) {
    const SliceNumbers& numbers = events_.other_slices.numbers_of(slice);
    return {.name = events_.other_slices.name_of(slice),
            .recorder = recorder_of_rank(places_[slice.thread]->pp, -1),
            .replica = replica_(events_.threads[slice.thread].process),
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
                                     .recorder = place.first,
                                     .replica = place.second,
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

  /// Tensor-parallel ranks run in lockstep, so the first one represents all.
  bool is_tensor_duplicate(std::uint32_t thread) {
    const std::optional<PipelinePlace>& place = places_[thread];
    if (!place) return false;
    const bool tensor_duplicate =
        first_tp_.at({events_.threads[thread].process, place->pp}) != place->tp;
    tensor_duplicate_ = tensor_duplicate_ || tensor_duplicate;
    return tensor_duplicate;
  }

  /// Finds the recorder by the rank that the thread's name or a rule states, or as find_ranks()
  /// did.
  std::int32_t recorder_of(const ChromeSlice& slice, std::optional<std::int32_t> rank) {
    if (const std::optional<PipelinePlace>& place = places_[slice.thread]) rank = place->pp;
    if (rank) {
      const auto stated = stated_.find(&slice);
      return recorder_of_rank(*rank, stated == stated_.end() ? -1 : stated->second);
    }
    const std::int32_t found = ranks_.recorder_of[ranked_.at(&slice)];
    const std::string key = fmt::format("{}", found);
    if (!recorder_.has(key)) trace_.recorders.push_back(ranks_.recorders[found]);
    return recorder_(key);
  }

  /// The replica is below 0 where ops do not state it.
  std::int32_t recorder_of_rank(std::int32_t rank, std::int32_t replica) {
    const std::string key = fmt::format("PP {} of {}", rank, replica);
    if (!recorder_.has(key)) {
      Recorder& recorder = trace_.recorders.emplace_back();
      recorder.where = file_;
      recorder.rank = rank;
      recorder.has_replica = replica >= 0;
    }
    return recorder_(key);
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

  void note_tensor_ranks() {
    if (tensor_duplicate_) trace_.remarks.notes.emplace_back(kFirstOfTensorRanks);
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
  ChromeRanks ranks_;
  std::unordered_map<const ChromeSlice*, std::size_t> ranked_;             ///< in `ranks_`
  std::unordered_map<const ChromeSlice*, std::int32_t> stated_;            ///< replicas
  std::map<std::string, StepMarks> marks_;                                 ///< by process
  std::map<std::string, std::pair<std::int32_t, std::int32_t>> shown_;     ///< recorder, replica
  std::vector<std::optional<PipelinePlace>> places_;                       ///< [thread]
  std::map<std::pair<std::string, std::int32_t>, std::int32_t> first_tp_;  ///< [pid, pp]
  ChromeActivities activities_{events_};
  std::vector<ObservedActivity> around_ops_;  ///< slices that contain some
  bool splits_backward_ = false;
  bool states_steps_ = false;
  bool uses_marks_ = false;  ///< for steps that nothing states
  bool tensor_duplicate_ = false;
  Numbering<std::string> recorder_;
  Numbering<std::string> replica_;
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
