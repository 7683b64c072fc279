// Reduces annotations to their computation, or groups calls and gradient functions into ops.
#include "traces/measured/measured_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "sim/ir/error.h"
#include "traces/measured/contradictions.h"
#include "traces/measured/early_end.h"
#include "traces/measured/message_kernels.h"
#include "traces/measured/op_names.h"
#include "traces/measured/overlap_parts.h"
#include "traces/measured/profile_activity.h"
#include "traces/measured/profile_place.h"
#include "traces/measured/profile_refusals.h"
#include "traces/measured/profile_works.h"
#include "traces/measured/step_marks.h"
#include "traces/measured/time_span.h"
#include "traces/measured/unannotated_ops.h"
#include "traces/measured/unnumbered_ranges.h"

namespace bubblescope::traces {

namespace {

constexpr std::string_view kOnDevice = "gpu_user_annotation";

class ProfileReader {
 public:
  ProfileReader(ChromeEvents events, const std::string& file, NameMatcher& names)
      : events_(std::move(events)),
        file_(file),
        names_(names),
        marks_(events_),
        activity_(events_),
        message_kernels_(find_message_kernels(events_)) {}

  ObservedTrace read() && {
    trace_.source = "kineto";
    const ProfilePlace place = locate_in_job(events_, file_);
    replica_ = place.replica.value_or(0);
    ranks_ = place.ranks;
    if (place.is_tensor_peer) {
      trace_.remarks.notes.emplace_back(
          "of tensor-parallel ranks, which run in lockstep, the first is shown");
      return std::move(trace_);
    }
    trace_.recorders.push_back(make_recorder(place, events_.host, file_));
    sort_slices();
    if (events_.slices.empty()) {
      add_unannotated();
    } else {
      has_weight_grads_ = names_weight_grads();
      waits_within_ops_ = holds_waiting();
      for (const ChromeSlice& slice : events_.slices) add(slice);
      named_step_.reset();
    }
    if (trace_.ops.empty()) refuse_profile(events_, activity_, file_);
    if (const std::optional<std::string> early = describe_early_end(events_, marks_, trace_.ops))
      trace_.remarks.doubts.push_back(file_ + ": " + *early);
    if (!names_messages_)
      for (const ObservedOp& message : infer_messages(message_kernels_, trace_.ops))
        trace_.ops.push_back(message);
    extend_to_results(activity_, trace_.ops);
    for (const std::string& contradiction : find_contradictions(events_, spans_))
      trace_.remarks.doubts.push_back(file_ + ": " + contradiction);
    trace_.works = find_profile_works(events_, marks_, trace_.ops, replica_);
    add_notes();
    return std::move(trace_);
  }

 private:
  /// Host annotations lead to their kernels. Device annotations are used only if no host annotation
  /// exists.
  void sort_slices() {
    const auto on_device = [](const ChromeSlice& slice) { return slice.category == kOnDevice; };
    const auto on_host = [&](const ChromeSlice& slice) { return !on_device(slice); };
    has_device_slices_ = std::any_of(events_.slices.begin(), events_.slices.end(), on_device);
    const bool any_on_host = std::any_of(events_.slices.begin(), events_.slices.end(), on_host);
    if (activity_.has_kernels() && any_on_host) {
      std::erase_if(events_.slices, on_device);
      has_device_slices_ = false;
    } else if (has_device_slices_) {
      std::erase_if(events_.slices, on_host);
    }
    std::stable_sort(events_.slices.begin(), events_.slices.end(),
                     [](const ChromeSlice& left, const ChromeSlice& right) {
                       return std::tuple(left.start, -left.end) <
                              std::tuple(right.start, -right.end);
                     });
    erase_outer_slices();
  }

  /// An op may be named twice, by its runtime and by a hook inside of it (tools/hooks). The inner
  /// slice is closer to the computation.
  void erase_outer_slices() {
    std::map<std::uint32_t, std::size_t> last;  // by thread
    std::vector<bool> is_outer(events_.slices.size(), false);
    for (std::size_t at = 0; at < events_.slices.size(); ++at) {
      const ChromeSlice& slice = events_.slices[at];
      const auto [found, is_first] = last.emplace(slice.thread, at);
      const ChromeSlice& before = events_.slices[found->second];
      if (!is_first && slice.end <= before.end && name_same_op(before, slice))
        is_outer[found->second] = true;
      found->second = at;
    }
    std::size_t at = 0;
    std::erase_if(events_.slices, [&](const ChromeSlice&) { return is_outer[at++]; });
  }

  bool name_same_op(const ChromeSlice& left, const ChromeSlice& right) {
    const std::optional<NamedOp> outer = op_of(left);
    const std::optional<NamedOp> inner = op_of(right);
    return outer && inner && outer->op.kind == inner->op.kind &&
           outer->op.microbatch == inner->op.microbatch &&
           (!outer->has_stage || outer->op.stage == inner->op.stage);
  }

  std::optional<NamedOp> op_of(const ChromeSlice& slice) {
    return slice.op.empty() ? names_.find(slice.name).op : parse_op_name(slice.op);
  }

  bool names_weight_grads() {
    return std::any_of(events_.slices.begin(), events_.slices.end(), [&](const ChromeSlice& slice) {
      const std::optional<NamedOp> named = op_of(slice);
      return named && named->op.kind == OpKind::kWeightGrad;
    });
  }

  /// Whether the range of any compute op has the end of a receive.
  bool holds_waiting() {
    return std::any_of(events_.slices.begin(), events_.slices.end(), [&](const ChromeSlice& slice) {
      const std::optional<NamedOp> named = op_of(slice);
      return (!named || is_compute(named->op.kind)) &&
             activity_.find_waiting_end(slice.start, slice.end) > slice.start;
    });
  }

  void add(const ChromeSlice& slice) {
    const std::optional<NamedOp> named = op_of(slice);
    if (!named) {
      if (const auto pair = parse_pair_name(slice.op.empty() ? slice.name : slice.op))
        add_pair(*pair, slice);
      return;
    }
    Recorder& recorder = trace_.recorders[0];
    if (named->rank && !recorder.rank) recorder.rank = named->rank;
    ObservedOp observed;
    observed.op = named->op;
    observed.op.kind = kind_in_trace(*named, has_weight_grads_);
    observed.numbered = named->has_microbatch;
    if (!named->has_stage) observed.chunk = named->chunk.value_or(0);
    observed.chunk_is_assumed = named->may_have_chunk;
    if (!observed.numbered && is_compute(observed.op.kind) && !named->step &&
        marks_.marks().empty())
      refuse_unnumbered(file_, slice.name);
    named_step_ = named->step;
    names_messages_ = names_messages_ || is_message(named->op.kind);
    observed.start = slice.start;
    observed.end = slice.end;
    if (!has_device_slices_) set_times(observed, {slice.start, slice.end}, slice.thread);
    if (!keep(observed, slice)) return;
    if (!is_compute(observed.op.kind)) return;
    note_span(observed, slice);
    if (!observed.may_hold_waiting) return;
    if (observed.start > slice.start)
      keep_arrival(observed, slice.start, observed.start);
    else
      keep_arrival_before(observed, slice);
    free_from_[slice.thread] = slice.end;
  }

  /// Records the message that was received between an op and the one before it. Where the ranges of
  /// ops hold their waiting, what is received between them is for later ones.
  void keep_arrival_before(const ObservedOp& op, const ChromeSlice& slice) {
    if (waits_within_ops_) return;
    const auto before = free_from_.find(slice.thread);
    std::optional<Nanos> from = marks_.start_before(slice.start);
    if (before != free_from_.end()) from = std::max(from.value_or(before->second), before->second);
    if (!from) return;
    const Nanos arrival = activity_.find_waiting_end(*from, slice.start);
    if (arrival > *from) keep_arrival(op, *from, arrival);
  }

  void note_span(const ObservedOp& op, const ChromeSlice& slice) {
    if (has_device_slices_) return;
    spans_.spans.push_back({{slice.start, slice.end},
                            slice.thread,
                            slice.number.value_or(-1),
                            op.step,
                            op_class_of(op.op)});
  }

  /// Records the message that an op waited for: it arrived when the waiting ended.
  void keep_arrival(const ObservedOp& op, Nanos waited_from, Nanos arrived) {
    ObservedOp message = op;
    if (op.op.kind == OpKind::kForward)
      message.op.kind = OpKind::kRecvForward;
    else if (gives_input_grad(op.op.kind))
      message.op.kind = OpKind::kRecvBackward;
    else
      return;
    message.op.pairing = {};
    message.start = waited_from;
    message.end = arrived;
    trace_.ops.push_back(message);
  }

  /// Sets the op's time on its device, or on the host without the waiting for its input.
  void set_times(ObservedOp& observed, const TimeSpan& range, std::uint32_t thread) const {
    if (!is_compute(observed.op.kind)) return set_message_times(observed, range);
    std::optional<TimeSpan> span = activity_.find_kernels(range);
    // An op that launches nothing, such as the input gradient of a first stage, is reached by its
    // device just before what is launched next.
    if (!span && activity_.has_kernels())
      if (const std::optional<Nanos> next = activity_.find_next_start(range.end))
        span = TimeSpan{*next, *next};
    if (span) {
      observed.device = DevicePlace{activity_.find_first_launch(range).value_or(range.start)};
    } else {
      observed.may_hold_waiting = true;
      span = activity_.find_computation(range, thread);
      observed.start_is_observed = span.has_value();
    }
    if (!span) return;
    observed.start = span->start;
    observed.end = span->end;
  }

  void set_message_times(ObservedOp& message, const TimeSpan& range) const {
    const std::optional<TimeSpan> span = activity_.find_message_kernels(range);
    if (!span) return;
    message.start = span->start;
    message.end = span->end;
    if (const auto kernel = find_only_kernel(message_kernels_, range))
      message.device = kernel->place;
  }

  void add_pair(const std::array<Op, 2>& pair, const ChromeSlice& slice) {
    const TimeSpan range{slice.start, slice.end};
    const auto split =
        has_device_slices_ ? std::nullopt : activity_.split_pair(range, slice.thread);
    if (!split)
      throw Error(fmt::format(
          "{}: '{}' is one annotation for two ops, and nothing within it shows where the forward "
          "ends and the backward begins; record the host's operators, too (ProfilerActivity.CPU)",
          file_, slice.name));
    for (std::size_t at = 0; at < pair.size(); ++at) {
      const TimeSpan& span = at == 0 ? split->first : split->second;
      ObservedOp observed;
      observed.op = pair[at];
      observed.start = span.start;
      observed.end = span.end;
      observed.may_hold_waiting = observed.start_is_observed = true;
      const TimeSpan launched = at == 0 ? TimeSpan{range.start, span.end} : span;
      if (const auto kernels = activity_.find_kernels(launched)) {
        observed.start = kernels->start;
        observed.end = kernels->end;
        observed.device = DevicePlace{activity_.find_first_launch(launched).value_or(span.start)};
        observed.may_hold_waiting = false;
      }
      if (!keep(observed, slice)) return;
      if (at == 0) note_span(observed, slice);
      const Nanos waited_from = at == 0 ? range.start : split->first.end;
      if (observed.may_hold_waiting && observed.start > waited_from)
        keep_arrival(observed, waited_from, observed.start);
    }
  }

  /// Gives an op its step; false if it is in none.
  bool keep(ObservedOp& observed, const ChromeSlice& slice) {
    observed.replica = replica_;
    if (named_step_) {
      observed.step = *named_step_;
    } else if (marks_.marks().empty()) {
      observed.step = occurrences_[{slice.thread, to_string(observed.op)}]++;
    } else if (const auto step = marks_.step_at(slice.start)) {
      observed.step = *step;
    } else {
      ++outside_marks_;
      return false;
    }
    if (!has_device_slices_ || !join_part(observed)) trace_.ops.push_back(observed);
    return true;
  }

  /// Joins the parts of an op that ran on several streams of a device.
  bool join_part(const ObservedOp& part) {
    const auto [found, is_new] =
        parts_.emplace(std::pair(part.step, to_string(part.op)), trace_.ops.size());
    if (is_new) return false;
    ObservedOp& whole = trace_.ops[found->second];
    widen(whole, part);
    return true;
  }

  void add_unannotated() {
    spans_.are_annotated = false;
    if (!trace_.recorders[0].rank) return;  // its stage is unknown
    const std::int32_t rank = *trace_.recorders[0].rank;
    const UnannotatedOps ops(events_);
    for (const ProfiledEvent& mark : marks_.marks()) {
      const UnannotatedStep step = ops.find({mark.start, mark.end});
      // Other kinds of training have forwards and backwards too, but no messages between stages.
      if (step.forwards == 0 || step.sends + step.receives == 0) continue;
      const bool is_last = &mark == &marks_.marks().back();
      if (is_last && step.forwards > step.backwards && !trace_.ops.empty()) {
        trace_.remarks.notes.push_back(fmt::format(
            "{}: step {} left out: it has {} forwards and {} backwards, as if it was cut off",
            file_, mark.number, step.forwards, step.backwards));
        continue;
      }
      expect_one_stage(step, {file_, mark.number, rank, ranks_});
      sends_.add(step.posts);
      Nanos free_from = mark.start;
      for (const UnannotatedOp& op : step.ops)
        add_unannotated(op, mark, std::exchange(free_from, op.span.end));
    }
    for (const std::string& doubt : describe_sends(sends_))
      trace_.remarks.doubts.push_back(file_ + ": " + doubt);
    if (!trace_.ops.empty())
      trace_.remarks.notes.emplace_back(
          "no op is annotated: forwards and backwards are what computes between messages, and "
          "micro-batches are counted in order");
  }

  void add_unannotated(const UnannotatedOp& op, const ProfiledEvent& mark, Nanos free_from) {
    ObservedOp observed;
    observed.op.kind = op.kind;
    observed.op.stage = *trace_.recorders[0].rank;
    observed.op.microbatch = op.microbatch;
    observed.start = op.span.start;
    observed.end = op.span.end;
    ChromeSlice slice;
    slice.start = mark.start;
    spans_.spans.push_back({op.span, 0, -1, mark.number, op_class_of(observed.op)});
    if (const auto kernels = activity_.find_kernels(op.span)) {
      observed.start = kernels->start;
      observed.end = kernels->end;
      observed.device = DevicePlace{activity_.find_first_launch(op.span).value_or(op.span.start)};
      keep(observed, slice);
      return;
    }
    observed.may_hold_waiting = observed.start_is_observed = true;
    // Otherwise the first op would include the wait for the step to begin.
    const Nanos arrival = activity_.find_waiting_end(free_from, op.span.start);
    const bool has_waited = arrival > free_from;
    if (has_waited) observed.start = arrival;
    keep(observed, slice);
    if (has_waited) keep_arrival(observed, free_from, observed.start);
  }

  void add_notes() {
    if (events_.negative_durations > 0) {
      trace_.remarks.doubts.push_back(describe_negative_durations(events_.negative_durations));
      trace_.remarks.notes.push_back(trace_.remarks.doubts.back());
    }
    if (outside_marks_ > 0)
      trace_.remarks.notes.push_back(fmt::format(
          "{}: {} op(s) left out, which lie in no ProfilerStep", file_, outside_marks_));
  }

  ChromeEvents events_;
  const std::string& file_;
  NameMatcher& names_;
  StepMarks marks_;
  ProfileActivity activity_;
  std::vector<MessageKernel> message_kernels_;
  bool names_messages_ = false;  ///< there are annotations of messages
  std::int32_t replica_ = 0;
  std::int64_t ranks_ = 0;  ///< number of ranks of the pipeline; 0 if unknown
  bool has_device_slices_ = false;
  ProfiledOps spans_;
  UnannotatedSends sends_;
  bool has_weight_grads_ = false;
  std::optional<std::int64_t> named_step_;    ///< that the current annotation states
  bool waits_within_ops_ = false;             ///< receives complete within the ranges of ops
  std::map<std::uint32_t, Nanos> free_from_;  ///< by thread: the end of its last op's range
  std::size_t outside_marks_ = 0;
  std::map<std::pair<std::uint32_t, std::string>, std::int64_t> occurrences_;
  std::map<std::pair<std::int64_t, std::string>, std::size_t> parts_;
  ObservedTrace trace_;
};

}  // namespace

ObservedTrace read_profile(ChromeEvents events, const std::string& file, NameMatcher& names) {
  const std::optional<std::string> unnumbered = erase_unnumbered(events.slices, names);
  ObservedTrace trace = ProfileReader(std::move(events), file, names).read();
  if (unnumbered) trace.remarks.doubts.push_back(file + ": " + *unnumbered);
  return trace;
}

}  // namespace bubblescope::traces
