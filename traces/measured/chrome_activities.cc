// Compares slices with ops: by arguments first, then by threads and processes.
#include "traces/measured/chrome_activities.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <tuple>

#include "traces/files/quote.h"
#include "traces/measured/activity_names.h"
#include "traces/measured/longest_names.h"
#include "traces/measured/rank_words.h"
#include "traces/text/time_axis.h"

namespace bubblescope::traces {

namespace {

/// Arguments decide alone; without one, the name of the thread, the thread and the process do.
constexpr std::size_t kThreadName = 5;
constexpr std::size_t kThread = 6;
constexpr std::size_t kProcess = 7;

std::optional<std::string> text_of(const std::optional<std::int64_t>& number) {
  if (!number) return {};
  return std::to_string(*number);
}

/// Whether a slice lies within days of the ops of its rank, of which there must be some.
bool lies_near(const OtherSlice& slice, const std::vector<TimeSpan>& ops) {
  return !ops.empty() && lie_within_days(slice.start, ops.front().start) &&
         lie_within_days(slice.end, ops.front().start);
}

}  // namespace

std::vector<OtherSlice> list_outer_first(const OtherSlices& slices) {
  std::vector<OtherSlice> order = slices.all();
  std::stable_sort(order.begin(), order.end(), [](const OtherSlice& left, const OtherSlice& right) {
    return std::tuple(left.thread, left.start, -left.end) <
           std::tuple(right.thread, right.start, -right.end);
  });
  return order;
}

ChromeActivities::Evidence ChromeActivities::evidence_of(std::uint32_t thread_index,
                                                         const SliceNumbers& numbers) const {
  const ChromeThread& thread = events_.threads[thread_index];
  // The values have the order of the constants above.
  Evidence evidence{text_of(numbers.pp_rank), text_of(numbers.replica), text_of(numbers.tensor),
                    text_of(numbers.rank), text_of(numbers.stage)};
  const std::optional<NamedNumber> named = find_rank_number(thread.name);
  if (named && (named->is_rank || named->is_device))
    evidence[kThreadName] = thread.process + " " + std::to_string(named->number);
  evidence[kThread] = std::to_string(thread_index);
  evidence[kProcess] = thread.process;
  return evidence;
}

void ChromeActivities::add_op(const ChromeSlice& slice, const ObservedOp& op) {
  const Evidence evidence = evidence_of(slice.thread, numbers_of(slice));
  for (std::size_t at = 0; at < kEvidence; ++at)
    if (evidence[at]) places_[at][*evidence[at]].emplace(op.recorder, op.replica);
  if (is_compute(op.op.kind)) ops_[op.recorder].push_back({op.start, op.end});
  all_.emplace(op.recorder, op.replica);
  if (!slice.step) return;
  widen(steps_.emplace(*slice.step, TimeSpan{op.start, op.end}).first->second, op);
}

std::optional<ChromeActivities::Place> ChromeActivities::find_place(
    const Evidence& evidence) const {
  std::optional<Places> common;
  for (std::size_t at = 0; at < kEvidence; ++at) {
    if (!evidence[at] || places_[at].empty()) continue;
    if (at == kProcess && common && common->size() == 1) break;
    const auto found = places_[at].find(*evidence[at]);
    const bool may_differ = at == kThreadName || at == kThread;  // which may run no ops
    if (found == places_[at].end() && may_differ) continue;
    if (found == places_[at].end()) return {};
    if (!common) {
      common = found->second;
      continue;
    }
    Places both;
    std::set_intersection(common->begin(), common->end(), found->second.begin(),
                          found->second.end(), std::inserter(both, both.end()));
    common = std::move(both);
  }
  if (!common || common->size() != 1) return {};
  return *common->begin();
}

/// The ranks that share its arguments stand for the job, one for each thread: what ran at once on
/// several threads does not add up.
std::optional<ChromeActivities::Place> ChromeActivities::find_job_place(const OtherSlice& slice) {
  if (steps_.empty() || !events_.other_slices.numbers_of(slice).step) return {};
  if (!purpose_of(slice).is_outer) return {};
  Places ranks = all_;
  const Evidence evidence = evidence_of(slice.thread, events_.other_slices.numbers_of(slice));
  for (std::size_t at = 0; at < kThreadName; ++at) {
    if (!evidence[at] || places_[at].empty()) continue;
    const auto found = places_[at].find(*evidence[at]);
    if (found == places_[at].end()) return {};
    std::erase_if(ranks, [&](const Place& place) { return !found->second.contains(place); });
  }
  const std::size_t number = of_job_.emplace(slice.thread, of_job_.size()).first->second;
  const auto is_of_another = [&](const Place& place) {
    return place.second != ranks.begin()->second;
  };
  if (number >= ranks.size() || std::any_of(ranks.begin(), ranks.end(), is_of_another)) return {};
  return *std::next(ranks.begin(), static_cast<std::ptrdiff_t>(number));
}

void ChromeActivities::sort_ops() {
  if (is_sorted_) return;
  is_sorted_ = true;
  for (auto& [_, spans] : ops_) sort_by_start(spans);
  std::vector<TimeSpan> steps;
  for (const auto& [_, step] : steps_) steps.push_back(step);
  sort_by_start(steps);
  for (const TimeSpan& step : steps)
    if (!busy_.empty() && step.start <= busy_.back().end)
      widen(busy_.back(), step);
    else
      busy_.push_back(step);
}

Nanos ChromeActivities::find_time_beside_steps(const OtherSlice& slice) const {
  Nanos time = slice.end - slice.start;
  auto next = std::partition_point(busy_.begin(), busy_.end(),
                                   [&](const TimeSpan& busy) { return busy.end <= slice.start; });
  for (; next != busy_.end() && next->start < slice.end; ++next)
    time -= std::min(slice.end, next->end) - std::max(slice.start, next->start);
  return time;
}

void ChromeActivities::note_unplaced(const OtherSlice& slice) {
  if (steps_.empty() || !events_.other_slices.numbers_of(slice).step) return;
  const std::string& name = events_.other_slices.name_of(slice);
  if (!purpose_of(slice).is_outer && is_message_or_waiting(name)) return;
  sort_ops();
  const Nanos outside = find_time_beside_steps(slice);
  if (outside > 0) beside_[without_digits(name)] += outside;
}

std::optional<std::string> ChromeActivities::describe_unplaced() const {
  constexpr Nanos kOfSteps = 100;
  Nanos steps = 0;
  for (const auto& [_, step] : steps_) steps += step.length();
  std::vector<TimedName> named;
  for (const auto& [name, time] : beside_)
    if (time * kOfSteps >= steps)
      named.push_back({fmt::format("{} ({})", quote(name), format_time(time)), time});
  if (named.empty()) return {};
  return fmt::format(
      "slices state a step, but nothing says of which rank they are, so they are in no step: {}; "
      "state args.rank or args.pp_rank of all",
      list_longest(std::move(named)));
}

/// A collective on a thread of its own may last longer than the ops beside it.
bool ChromeActivities::contains_ops(const OtherSlice& slice, const Known& known) {
  sort_ops();
  if (!known.shares_thread && purpose_of(slice).is_outer) return false;
  const std::vector<TimeSpan>& spans = ops_[known.place->first];
  const auto first =
      std::lower_bound(spans.begin(), spans.end(), slice.start,
                       [](const TimeSpan& span, Nanos time) { return span.start < time; });
  return first != spans.end() && first->end <= slice.end;
}

const ChromeActivities::Purpose& ChromeActivities::purpose_of(const OtherSlice& slice) {
  const auto [known, is_new] = purposes_.try_emplace(slice.name);
  if (!is_new) return known->second;
  const std::string& name = events_.other_slices.name_of(slice);
  known->second = {is_outer_activity(name), is_loading_data(name)};
  return known->second;
}

const ChromeActivities::Known& ChromeActivities::know(const OtherSlice& slice) {
  const auto [known, is_new] = known_.try_emplace({slice.thread, slice.numbers});
  if (!is_new) return known->second;
  const Evidence evidence = evidence_of(slice.thread, events_.other_slices.numbers_of(slice));
  known->second = {find_place(evidence), places_[kProcess].contains(*evidence[kProcess]),
                   places_[kThread].contains(*evidence[kThread])};
  return known->second;
}

std::optional<ObservedActivity> ChromeActivities::find_around_ops(const OtherSlice& slice) {
  const Known& known = know(slice);
  if (!known.place || !contains_ops(slice, known)) return {};
  ObservedActivity activity{events_.other_slices.name_of(slice),
                            known.place->first,
                            known.place->second,
                            0,
                            true,
                            slice.start,
                            slice.end};
  activity.may_lack_work = true;
  const std::optional<std::int64_t>& step = events_.other_slices.numbers_of(slice).step;
  activity.has_step = step && !steps_.empty();
  activity.step = activity.has_step ? *step : 0;
  return activity;
}

std::optional<ObservedActivity> ChromeActivities::find(const OtherSlice& slice) {
  const Known& known = know(slice);
  std::optional<Place> place = known.place;
  const bool is_of_job = !place && (place = find_job_place(slice));
  if (place) ++placed_;
  if (!place && (known.shares_process || purpose_of(slice).is_outer)) ++unplaced_;
  if (!place) note_unplaced(slice);
  if (!place || (!is_of_job && contains_ops(slice, known))) return {};
  if (!lies_near(slice, ops_[place->first])) return {};
  if (last_ && last_->thread == slice.thread && slice.end <= last_->end) return {};
  last_ = slice;
  const bool loads_data = purpose_of(slice).is_loading_data;
  ObservedActivity activity{loads_data ? kLoadingData : events_.other_slices.name_of(slice),
                            place->first,
                            place->second,
                            0,
                            false,
                            slice.start,
                            slice.end};
  activity.has_step = false;
  activity.runs_between_ops = known.shares_thread;
  activity.has_microbatch = events_.other_slices.numbers_of(slice).has_microbatch;
  return activity;
}

}  // namespace bubblescope::traces
