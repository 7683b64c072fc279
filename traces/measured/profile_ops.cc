// Cuts annotations down to their computation, and gives them their steps.
#include "traces/measured/profile_ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/ir/depend.h"
#include "sim/ir/error.h"
#include "traces/measured/counted_steps.h"
#include "traces/measured/profile_refusals.h"

namespace bubblescope::traces {

namespace {

/// An op of an annotation.
struct TimedOp {
  ObservedOp op;
  Nanos waited_from = 0;  ///< if it waited for its input
};

ObservedOp time_message(ObservedOp message, const TimeSpan& range, const ProfiledRank& profile) {
  const std::optional<TimeSpan> span = profile.activity.find_message_kernels(range);
  if (!span) return message;
  message.start = span->start;
  message.end = span->end;
  if (const auto kernel = find_only_kernel(profile.message_kernels, range))
    message.device = kernel->place;
  return message;
}

/// Takes the time on the device, or on the host without the waiting for its input.
ObservedOp time_compute(ObservedOp op, const ChromeSlice& slice, const ProfileActivity& activity) {
  const TimeSpan range{slice.start, slice.end};
  if (const auto on_device = observe_on_device(op, range, activity)) return *on_device;
  // An op that launches nothing, such as the input gradient of a first stage, is reached by its
  // device just before what is launched next.
  if (activity.has_kernels())
    if (const std::optional<Nanos> next = activity.find_next_start(range.end)) {
      op.device = DevicePlace{range.start};
      op.start = op.end = *next;
      return op;
    }
  op.may_hold_waiting = true;
  if (const auto computation = activity.find_computation(range, slice.thread)) {
    op.start_is_observed = true;
    op.start = computation->start;
    op.end = computation->end;
  }
  return op;
}

ObservedOp observe_op(const NamedOp& named, const ChromeSlice& slice, bool has_weight_grads,
                      const ProfiledRank& profile) {
  ObservedOp observed;
  observed.op = named.op;
  observed.op.kind = kind_in_trace(named, has_weight_grads);
  observed.numbered = named.has_microbatch;
  if (!named.has_stage) observed.chunk = named.chunk.value_or(0);
  observed.chunk_is_assumed = named.may_have_chunk;
  const bool computes = is_compute(observed.op.kind);
  if (!observed.numbered && computes && !named.step && profile.marks.marks().empty())
    refuse_unnumbered(profile.file, slice.name);
  observed.start = slice.start;
  observed.end = slice.end;
  if (is_of_device(slice)) return observed;
  return computes ? time_compute(observed, slice, profile.activity)
                  : time_message(observed, {slice.start, slice.end}, profile);
}

std::vector<TimedOp> observe_pair(const std::array<Op, 2>& pair, const ChromeSlice& slice,
                                  const ProfiledRank& profile) {
  const auto split = is_of_device(slice)
                         ? std::nullopt
                         : profile.activity.split_pair({slice.start, slice.end}, slice.thread);
  if (!split)
    throw Error(fmt::format(
        "{}: '{}' is one annotation for two ops, and nothing within it shows where the forward "
        "ends and the backward begins; record the host's operators, too (ProfilerActivity.CPU)",
        profile.file, slice.name));
  std::vector<TimedOp> timed;
  for (const Op& op : pair) {
    const TimeSpan& span = timed.empty() ? split->first : split->second;
    ObservedOp observed;
    observed.op = op;
    observed.start = span.start;
    observed.end = span.end;
    const TimeSpan launched = timed.empty() ? TimeSpan{slice.start, span.end} : span;
    observed.start_is_observed = true;
    const auto on_device = observe_on_device(observed, launched, profile.activity);
    observed.may_hold_waiting = true;
    timed.push_back({on_device.value_or(observed), timed.empty() ? slice.start : split->first.end});
  }
  return timed;
}

/// The ops of an annotation; none where it names none.
std::vector<TimedOp> observe_slice(const NamedSlice& named, bool has_weight_grads,
                                   const ProfiledRank& profile) {
  if (named.pair) return observe_pair(*named.pair, named.slice, profile);
  if (!named.op) return {};
  return {{observe_op(*named.op, named.slice, has_weight_grads, profile), named.slice.start}};
}

/// Returns the wait between an op and the one before it on its thread, which ended at `free_from`.
TimeSpan find_waiting_before(const ChromeSlice& slice, std::optional<Nanos> free_from,
                             const ProfiledRank& profile) {
  std::optional<Nanos> from = profile.marks.start_before(slice.start);
  if (free_from) from = std::max(from.value_or(*free_from), *free_from);
  if (!from) return {};
  return {*from, profile.activity.find_waiting_end(*from, slice.start)};
}

/// Joins the parts of an op that ran on several streams of a device.
std::vector<ObservedOp> join_parts(const std::vector<ObservedOp>& parts) {
  std::map<std::pair<std::int64_t, std::string>, std::size_t> places;
  std::vector<ObservedOp> joined;
  for (const ObservedOp& part : parts) {
    const auto [place, is_new] =
        places.emplace(std::pair(part.step, to_string(part.op)), joined.size());
    if (is_new)
      joined.push_back(part);
    else
      widen(joined[place->second], part);
  }
  return joined;
}

/// Finds the steps of ops: those that annotations state, or marks.
class StepFinder {
 public:
  explicit StepFinder(const StepMarks& marks) : marks_(marks) {}

  /// A pair is in the step that the annotation before it states. nullopt between marks. Where
  /// nothing states the step, it is to be counted; the parts of an op on several streams of a
  /// device then have the same number, by how often each stream ran it.
  std::optional<std::int64_t> find(const NamedSlice& named, const Op& op) {
    if (named.op) stated_ = named.op->step;
    if (stated_) return stated_;
    if (!marks_.marks().empty()) return marks_.step_at(named.slice.start);
    return is_of_device(named.slice) ? parts_[{named.slice.thread, to_string(op)}]++ : 0;
  }

  /// Whether nothing states the step for which find() was asked last.
  bool is_to_be_counted() const { return !stated_ && marks_.marks().empty(); }

 private:
  const StepMarks& marks_;
  std::optional<std::int64_t> stated_;
  std::map<std::pair<std::uint32_t, std::string>, std::int64_t> parts_;
};

/// Arrivals and ranges take the steps of their ops, by indices in ProfileOps.
struct Followers {
  std::vector<std::size_t> arrivals;     ///< each behind its op
  std::vector<std::size_t> op_of_range;  ///< [range]
};

/// Counts the steps that nothing states.
ProfileOps with_all_steps(ProfileOps found, const Followers& followers) {
  std::vector<std::size_t> counted;
  auto arrival = followers.arrivals.begin();
  for (std::size_t at = 0; at < found.ops.size(); ++at)
    if (arrival != followers.arrivals.end() && *arrival == at)
      ++arrival;
    else if (found.ops[at].step_is_counted)
      counted.push_back(at);
  found.ops = with_counted_steps(std::move(found.ops), counted);
  for (const std::size_t at : followers.arrivals) found.ops[at].step = found.ops[at - 1].step;
  for (std::size_t at = 0; at < followers.op_of_range.size(); ++at)
    found.ranges.spans[at].step = found.ops[followers.op_of_range[at]].step;
  return found;
}

/// Whether the range of any compute op has the end of a receive: what is received between ops is
/// then for later ones.
bool wait_within_ops(const std::vector<NamedSlice>& slices, const ProfileActivity& activity) {
  return std::any_of(slices.begin(), slices.end(), [&](const NamedSlice& named) {
    const ChromeSlice& slice = named.slice;
    return (!named.op || is_compute(named.op->op.kind)) &&
           activity.find_waiting_end(slice.start, slice.end) > slice.start;
  });
}

}  // namespace

std::optional<ObservedOp> observe_on_device(ObservedOp op, const TimeSpan& launched,
                                            const ProfileActivity& activity) {
  const std::optional<TimeSpan> kernels = activity.find_kernels(launched);
  if (!kernels) return {};
  op.start = kernels->start;
  op.end = kernels->end;
  op.device = DevicePlace{activity.find_first_launch(launched).value_or(launched.start)};
  return op;
}

std::optional<ObservedOp> find_arrival(const ObservedOp& op, const TimeSpan& waiting,
                                       std::uint32_t thread, const ProfileActivity& activity) {
  const std::optional<OpKind> receive = find_receive(op.op.kind);
  if (!receive || waiting.length() <= 0 || activity.only_sends()) return {};
  ObservedOp message = op;
  message.op.kind = *receive;
  message.op.pairing = {};
  message.start = waiting.start;
  message.end = waiting.end;
  message.waited_from = activity.find_waiting_start(thread, waiting.start, waiting.end);
  return message;
}

ProfileOps find_annotated_ops(const ProfiledRank& profile, const std::vector<NamedSlice>& slices) {
  const bool has_weight_grads = std::any_of(
      slices.begin(), slices.end(),
      [](const NamedSlice& named) { return named.op && named.op->op.kind == OpKind::kWeightGrad; });
  const bool waits_within_ops = wait_within_ops(slices, profile.activity);
  ProfileOps found;
  StepFinder steps(profile.marks);
  Followers followers;
  std::map<std::uint32_t, std::optional<Nanos>> free_from;  // by thread: the end of its last op
  for (const NamedSlice& named : slices) {
    const ChromeSlice& slice = named.slice;
    if (named.op && !found.rank) found.rank = named.op->rank;
    found.has_messages = found.has_messages || (named.op && is_message(named.op->op.kind));
    bool is_first = true;
    for (auto& [op, waited_from] : observe_slice(named, has_weight_grads, profile)) {
      const std::optional<std::int64_t> step = steps.find(named, op.op);
      if (!step) {
        ++found.outside_marks;
        break;
      }
      op.step = *step;
      op.step_is_counted = steps.is_to_be_counted();
      found.ops.push_back(op);
      if (!is_compute(op.op.kind) || is_of_device(slice)) continue;
      if (std::exchange(is_first, false)) {
        followers.op_of_range.push_back(found.ops.size() - 1);
        found.ranges.spans.push_back({{slice.start, slice.end},
                                      slice.thread,
                                      slice.number.value_or(kNoNumber),
                                      op.step,
                                      op_class_of(op.op)});
      }
      if (!op.may_hold_waiting) continue;
      TimeSpan waiting{waited_from, op.start};
      if (named.op) {
        if (waiting.length() <= 0 && !waits_within_ops)
          waiting = find_waiting_before(slice, free_from[slice.thread], profile);
        free_from[slice.thread] = slice.end;
      }
      if (const auto arrival = find_arrival(op, waiting, slice.thread, profile.activity)) {
        followers.arrivals.push_back(found.ops.size());
        found.ops.push_back(*arrival);
      }
    }
  }
  if (!slices.empty() && is_of_device(slices.front().slice)) found.ops = join_parts(found.ops);
  return with_all_steps(std::move(found), followers);
}

}  // namespace bubblescope::traces
