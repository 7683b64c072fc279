// Leads from the events of a profile to the trace of its rank.
#include "traces/measured/measured_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/ir/counted.h"
#include "traces/measured/contradictions.h"
#include "traces/measured/early_end.h"
#include "traces/measured/lost_time.h"
#include "traces/measured/message_kernels.h"
#include "traces/measured/named_slices.h"
#include "traces/measured/profile_activity.h"
#include "traces/measured/profile_ops.h"
#include "traces/measured/profile_outer_activities.h"
#include "traces/measured/profile_place.h"
#include "traces/measured/profile_refusals.h"
#include "traces/measured/step_marks.h"
#include "traces/measured/tensor_peers.h"

namespace bubblescope::traces {

namespace {

/// Says that no kernel is one of the posted messages, although there are kernels of the library
/// that carries them.
std::optional<std::string> describe_unknown_messages(const ChromeEvents& events) {
  const auto count = [&](Activity activity) {
    return std::count_if(
        events.profiled.begin(), events.profiled.end(),
        [activity](const ProfiledEvent& event) { return event.activity == activity; });
  };
  const auto posted = count(Activity::kSend) + count(Activity::kReceive);
  if (posted == 0 || count(Activity::kMessageKernel) > 0 || count(Activity::kCollective) == 0)
    return {};
  return fmt::format(
      "sends and receives are posted ({}), but no kernel is known as theirs: NCCL names such "
      "kernels SendRecv, and RCCL names all of its kernels alike (ncclDevKernel_Generic). When "
      "messages were in transit is unknown, and counts as time that nothing explains",
      posted);
}

/// Whether the pipeline runs several times, as its first op does, in steps that nothing states.
bool runs_again(const std::vector<ObservedOp>& ops) {
  return std::count_if(ops.begin(), ops.end(), [&](const ObservedOp& observed) {
           return observed.op == ops.front().op && observed.chunk == ops.front().chunk &&
                  observed.step_is_counted;
         }) > 1;
}

/// Says what is wrong with the recording, and what is not in the trace.
Remarks describe_recording(const ProfileOps& found, const ProfiledRank& profile) {
  Remarks remarks = found.remarks;
  std::vector<std::string> wrong = find_contradictions(profile.events, found.ranges);
  if (auto early = describe_early_end(profile.events, profile.marks, found.ops))
    wrong.insert(wrong.begin(), *std::move(early));
  if (auto unknown = describe_unknown_messages(profile.events))
    wrong.insert(wrong.begin(), *std::move(unknown));
  for (const std::string& text : wrong) remarks.doubts.push_back(profile.file + ": " + text);
  if (profile.events.negative_durations > 0) {
    remarks.doubts.push_back(profile.file + ": " +
                             describe_negative_durations(profile.events.negative_durations));
    remarks.notes.push_back(remarks.doubts.back());
  }
  if (found.outside_marks > 0)
    remarks.notes.push_back(fmt::format("{}: {} left out, which lie in no ProfilerStep",
                                        profile.file, counted(found.outside_marks, "op")));
  if (profile.marks.marks().empty() && found.ranges.are_annotated && runs_again(found.ops))
    remarks.notes.emplace_back(
        "no step is marked (ProfilerStep#N): every run of the pipeline counts as one");
  return remarks;
}

/// Whether annotations name forwards alone, of a rank that evaluates gradient functions and posts
/// messages: they are those of its modules, as `forward_step` may be.
bool name_forwards_alone(const std::vector<NamedSlice>& slices, const ChromeEvents& events) {
  const auto has = [&](Activity activity) {
    return std::any_of(
        events.profiled.begin(), events.profiled.end(),
        [activity](const ProfiledEvent& event) { return event.activity == activity; });
  };
  return !slices.empty() &&
         std::all_of(slices.begin(), slices.end(),
                     [](const NamedSlice& named) {
                       return named.op && named.op->op.kind == OpKind::kForward &&
                              !named.op->has_stage;
                     }) &&
         has(Activity::kAutograd) && (has(Activity::kSend) || has(Activity::kReceive));
}

/// Returns the ops that annotations name or, where these name none or only forwards, those that
/// follow from messages.
ProfileOps find_ops(const ProfiledRank& profile, const std::vector<NamedSlice>& slices) {
  if (slices.empty()) return find_unannotated_ops(profile);
  if (!name_forwards_alone(slices, profile.events)) return find_annotated_ops(profile, slices);
  ProfileOps found = find_unannotated_ops(profile);
  if (found.ops.empty()) return find_annotated_ops(profile, slices);
  found.remarks.notes.push_back(
      fmt::format("{}: its annotations name forwards alone, such as '{}'. They are those of "
                  "modules: the ops are taken from the messages instead",
                  profile.file, slices.front().slice.name));
  return found;
}

/// Returns the trace of the rank, with messages and activities besides its ops.
ObservedTrace trace_ops(ProfileOps found, const ProfiledRank& profile) {
  if (found.ops.empty()) refuse_profile(profile.events, profile.activity, profile.file);
  ObservedTrace trace;
  trace.remarks = describe_recording(found, profile);
  trace.remarks.lost = find_lost_time(profile.events, found.ops, profile.file);
  trace.recorders.push_back(make_recorder(profile.place, profile.events.host, profile.file));
  if (!profile.place.rank) trace.recorders[0].rank = found.rank;
  trace.recorders[0].has_own_stage = !found.ranges.are_annotated;
  const std::int32_t replica = profile.place.replica.value_or(0);
  for (ObservedOp& op : found.ops) op.replica = replica;
  if (!found.has_messages)
    for (const ObservedOp& message : infer_messages(profile.message_kernels, found.ops))
      found.ops.push_back(message);
  trace.ops = extend_to_results(std::move(found.ops), profile.activity);
  trace.activities =
      find_profile_outer_activities(profile.events, profile.marks, trace.ops, replica);
  return trace;
}

}  // namespace

ObservedTrace read_profile(ChromeEvents events, const std::string& file, NameMatcher& names) {
  NamedSlices named = name_slices(std::exchange(events.slices, {}), names);
  const ProfilePlace place = locate_in_job(events, file);
  ObservedTrace trace;
  if (place.is_tensor_peer) {
    trace.remarks.notes.emplace_back(kFirstOfTensorRanks);
  } else {
    const ProfiledRank profile{file,
                               events,
                               place,
                               StepMarks(events),
                               ProfileActivity(events),
                               find_message_kernels(events)};
    trace = trace_ops(
        find_ops(profile, choose_slices(std::move(named.slices), profile.activity.has_kernels())),
        profile);
  }
  trace.source = {.name = "kineto", .may_begin_apart = true};
  if (named.doubt) trace.remarks.doubts.push_back(file + ": " + *named.doubt);
  return trace;
}

}  // namespace bubblescope::traces
