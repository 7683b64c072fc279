// Sorts events into ops, steps, parts and what else a rank did.
#include "traces/measured/event_collector.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string_view>

#include "sim/ir/error.h"
#include "sim/ir/number.h"
#include "traces/files/quote.h"
#include "traces/measured/chrome_ops.h"
#include "traces/measured/overlap_parts.h"

namespace bubblescope::traces {

namespace {

constexpr std::size_t kMaxKept = 100'000'000;

/// Such events have no thread, and may overlap.
constexpr const char* kAsynchronous =
    "asynchronous events (\"b\" and \"e\"), which are not read: write slices, \"X\" or \"B\" and "
    "\"E\"";

/// Adds what the end of a slice states and its begin does not.
void add_arguments(ChromeSlice& slice, const ChromeSlice& end) {
  if (slice.op.empty()) slice.op = end.op;
  using Number = std::optional<std::int64_t> ChromeSlice::*;
  for (const Number number :
       {&ChromeSlice::step, &ChromeSlice::microbatch, &ChromeSlice::chunk, &ChromeSlice::stage,
        &ChromeSlice::pp_rank, &ChromeSlice::rank, &ChromeSlice::replica, &ChromeSlice::tensor})
    if (!(slice.*number)) slice.*number = end.*number;
  slice.arguments.resize(std::max(slice.arguments.size(), end.arguments.size()));
  for (std::size_t at = 0; at < end.arguments.size(); ++at)
    if (slice.arguments[at].empty()) slice.arguments[at] = end.arguments[at];
}

/// PyTorch's profiler has these categories for what the host does.
bool is_of_profiled_host(std::string_view category) {
  return category == "cpu_op" || category == "cuda_runtime" || category == "cuda_driver";
}

}  // namespace

void EventCollector::add(ReadEvent& event) {
  if (event.slice.number) add_number(event);
  found_.is_kineto = found_.is_kineto || is_of_profiled_host(event.slice.category);
  if (event.slice.category == "user_annotation") note_process(event);
  if (event.phase == "M") take_metadata(event);
  if (event.phase == "X") finish_slice(event);
  if (event.phase == "B") begin_slice(event);
  if (event.phase == "E") end_slice(event);
  if (event.phase == "b") ++found_.left_out[kAsynchronous];
  if (event.slice.category == "fwdbwd" && event.phase == "s")
    record_activity(event, Activity::kGradientFlow, event.flow, 0);
  if (event.slice.category == "fwdbwd" && event.phase == "f")
    record_activity(event, Activity::kGradientEnd, event.flow, 0);
}

void EventCollector::finish(Nanos base) {
  apply_late_rules();
  for (const auto& [thread, open] : open_)
    for (const OpenSlice& begun : open)
      if (may_matter(begun.slice)) ++found_.left_out["begun and never ended"];
  if (found_.is_kineto) found_.other_slices = {};  // those before its first own event
  constexpr Nanos kMaxBase = std::int64_t{1} << 61;
  if (base <= 0 || base > kMaxBase) return;
  const auto shift = [base](auto& events) {
    for (auto& event : events) {
      event.start += base;
      event.end += base;
    }
  };
  shift(found_.slices);
  shift(found_.parts);
  found_.other_slices.shift(base);
  shift(found_.profiled);
}

std::uint32_t EventCollector::thread_of(const ReadEvent& event) {
  // Events of one thread mostly follow each other.
  if (last_thread_ < found_.threads.size() && found_.threads[last_thread_].id == event.tid &&
      found_.threads[last_thread_].process == event.pid)
    return last_thread_;
  const auto [found, is_new] = threads_.emplace(std::pair(event.pid, event.tid),
                                                static_cast<std::uint32_t>(threads_.size()));
  if (is_new) found_.threads.push_back({event.pid, event.tid, ""});
  last_thread_ = found->second;
  return last_thread_;
}

void EventCollector::keep_other_slice(ReadEvent& event, OtherPlace place) {
  ChromeSlice& slice = event.slice;
  slice.thread = thread_of(event);
  slice.start = timestamp_of(event);
  slice.end = slice.start + std::max<Nanos>(0, duration_of(event));
  keep_other(slice, place);
}

void EventCollector::keep_other(const ChromeSlice& slice, OtherPlace place) {
  switch (place) {
    case OtherPlace::kNowhere: return;
    case OtherPlace::kParts:
      expect_room(found_.parts.size(), "parts of ops");
      found_.parts.push_back(slice);
      return;
    case OtherPlace::kOthers:
      expect_room(found_.other_slices.all().size(), "slices");
      found_.other_slices.add(slice);
      return;
  }
}

void EventCollector::record_activity(const ReadEvent& event, Activity activity, std::int64_t number,
                                     Nanos duration) {
  const Nanos start = timestamp_of(event);
  found_.profiled.push_back(
      {start, start + std::max<Nanos>(0, duration), number, thread_of(event), activity});
}

void EventCollector::add_number(const ReadEvent& event) {
  if (numbers_ == nullptr || event.pid != numbered_) {
    numbered_ = event.pid;
    numbers_ = &found_.numbers_by_process[event.pid];
  }
  found_.numbers.add(*event.slice.number);
  numbers_->add(*event.slice.number);
}

/// Ranks have steps and ops of their own. Threads of one rank may have process numbers of their
/// own.
void EventCollector::note_process(const ReadEvent& event) {
  if (!found_.profiled_processes.empty() && event.pid == profiled_) return;
  if (!event.slice.name.starts_with(kStepMark) && !is_op(event.slice)) return;
  profiled_ = event.pid;
  found_.profiled_processes.insert(event.pid);
}

void EventCollector::take_metadata(const ReadEvent& event) {
  if (event.slice.name == "thread_name") found_.threads[thread_of(event)].name = event.given_name;
  if (event.slice.name == "process_name") found_.processes[event.pid].name = event.given_name;
  if (event.slice.name == "process_sort_index")
    found_.processes[event.pid].sort_index = event.sort_index;
}

/// Records a profiler event that is not an op.
void EventCollector::note_activity(const ReadEvent& event) {
  const std::string& name = event.slice.name;
  if (event.peer) found_.peers[event.group_ranks].insert(*event.peer);
  const std::optional<Activity> activity = classify_activity(event.slice.category, name);
  if (!activity) return;
  record_activity(event, *activity, event.number_of(*activity), duration_of(event));
  if (*activity != Activity::kCollective && *activity != Activity::kHostCollective) return;
  found_.profiled.back().collective = classify_collective(name);
  found_.profiled.back().group = classify_group(event.group);
}

bool EventCollector::is_op(const ChromeSlice& slice) {
  return !slice.op.empty() || names_.names_op(slice.name) ||
         (slice.microbatch && find_op(slice, names_));
}

/// Whether it is an op or a step, or a rule may say so.
bool EventCollector::may_matter(const ChromeSlice& slice) {
  return is_op(slice) || names_.need_more(slice.name) || names_.find(slice.name).is_step;
}

/// Records a slice that a rule calls a step; false for any other.
bool EventCollector::take_step(const ReadEvent& event) {
  const NameMeaning& meaning = names_.find(event.slice.name);
  if (!meaning.is_step) return false;
  ChromeSlice slice;
  slice.thread = thread_of(event);
  slice.start = timestamp_of(event);
  slice.end = slice.start + std::max<Nanos>(0, duration_of(event));
  record_step(slice, meaning.step);
  return true;
}

/// Steps without a number are counted on their process.
void EventCollector::record_step(const ChromeSlice& slice, std::optional<std::int64_t> number) {
  std::int64_t& next = ruled_steps_[found_.threads[slice.thread].process];
  found_.profiled.push_back(
      {slice.start, slice.end, number ? *number : next++, slice.thread, Activity::kStep});
}

/// Rules may need the names of threads, which may follow their events.
void EventCollector::apply_late_rules() {
  std::vector<bool> is_dropped;
  for (ChromeSlice& slice : found_.slices)
    is_dropped.push_back(names_.need_more(slice.name) && !apply_late_rule(slice));
  std::size_t at = 0;
  std::erase_if(found_.slices, [&](const ChromeSlice&) { return is_dropped[at++]; });
}

/// Gives a slice its meaning by a rule that needs all of it; false where it is not an op.
bool EventCollector::apply_late_rule(ChromeSlice& slice) {
  const ChromeThread& thread = found_.threads[slice.thread];
  const NameMeaning meaning =
      names_.find({slice.name, thread.name, thread.id, slice.category, slice.arguments});
  if (meaning.is_step) record_step(slice, meaning.step);
  if (meaning.is_step) return false;
  if (meaning.is_ruled) {
    slice.ruled = meaning.op;
    return meaning.op.has_value();
  }
  if (is_op(slice)) return true;
  count_left_out(slice);
  keep_other(slice, find_other_place(slice));
  return false;
}

/// Slices that rules ignore belong nowhere.
EventCollector::OtherPlace EventCollector::find_other_place(const ChromeSlice& slice) {
  if (names_.find(slice.name).is_ruled) return OtherPlace::kNowhere;
  if (slice.category == "user_annotation" && is_part_name(slice.name)) return OtherPlace::kParts;
  return found_.is_kineto ? OtherPlace::kNowhere : OtherPlace::kOthers;
}

void EventCollector::count_left_out(const ChromeSlice& slice) {
  ++found_.left_out[slice.category];
  if (is_named_by_user(slice.category)) found_.names.add(slice.name);
}

/// Records a slice of two events that is not an op.
void EventCollector::take_other(const ChromeSlice& slice, bool is_timed) {
  count_left_out(slice);
  if (is_timed) keep_other(slice, find_other_place(slice));
}

void EventCollector::finish_slice(ReadEvent& event) {
  const bool is_ruled_late = names_.need_more(event.slice.name);
  if (!is_ruled_late && take_step(event)) return;
  const bool is_other = !is_ruled_late && !is_op(event.slice);
  if (is_ruled_late || is_other) note_activity(event);  // which no rule changes
  if (is_other) {
    count_left_out(event.slice);
    // Only ops, and what states its step, need a time.
    const bool is_timed = event.start && event.duration;
    const OtherPlace place = find_other_place(event.slice);
    if (place != OtherPlace::kNowhere && (is_timed || event.slice.step))
      keep_other_slice(event, place);
    return;
  }
  event.slice.start = timestamp_of(event);
  // Profilers write -1 for slices that had not ended, so their end is unknown.
  const Nanos duration = duration_of(event);
  if (duration < 0) {
    ++found_.negative_durations;
    ++found_.negative_by_process[event.pid];
  }
  event.slice.end = event.slice.start + std::max<Nanos>(0, duration);
  keep(event, std::move(event.slice));
}

/// Throws Error where an op has no timestamp; other slices need none.
void EventCollector::begin_slice(const ReadEvent& event) {
  constexpr std::size_t kMaxOpen = 1'000'000;
  if (open_count_ == kMaxOpen)
    throw Error(
        fmt::format("{} has more than {} slices that began and have not ended; it was cut, "
                    "or is not a trace of a program",
                    file_, kMaxOpen));
  ++open_count_;
  if (may_matter(event.slice)) timestamp_of(event);
  open_[thread_of(event)].push_back({event.slice, event.start});
}

/// An end without a name ends the slice that began last. Both may have arguments.
void EventCollector::end_slice(const ReadEvent& event) {
  constexpr std::ptrdiff_t kMaxOverlapping = 64;  // ends that are out of order are near
  std::vector<OpenSlice>& open = open_[thread_of(event)];
  const std::string& name = event.slice.name;
  const auto last = open.rbegin() + std::min(kMaxOverlapping, std::ssize(open));
  const auto found = std::find_if(open.rbegin(), last, [&](const OpenSlice& begun) {
    return name.empty() || begun.slice.name == name;
  });
  if (found == last) return;
  const bool is_timed = found->start && event.start;
  ChromeSlice slice = std::move(found->slice);
  slice.start = found->start.value_or(0);
  open.erase(std::next(found).base());
  --open_count_;
  slice.end = std::max(slice.start, event.start.value_or(slice.start));
  add_arguments(slice, event.slice);
  slice.thread = thread_of(event);
  if (may_matter(slice)) timestamp_of(event);
  const bool is_ruled_late = names_.need_more(slice.name);
  if (const NameMeaning& meaning = names_.find(slice.name); !is_ruled_late && meaning.is_step)
    record_step(slice, meaning.step);
  else if (is_ruled_late || is_op(slice))
    keep(event, std::move(slice));
  else
    take_other(slice, is_timed);
}

void EventCollector::keep(const ReadEvent& event, ChromeSlice slice) {
  expect_room(found_.slices.size(), "ops");
  slice.thread = thread_of(event);
  found_.slices.push_back(std::move(slice));
}

void EventCollector::expect_room(std::size_t kept, const char* what) const {
  if (kept == kMaxKept)
    throw Error(
        fmt::format("{} has more than {} {}; split it into several files", file_, kMaxKept, what));
}

Nanos EventCollector::timestamp_of(const ReadEvent& event) const {
  return time_in(event, event.start, "ts");
}

Nanos EventCollector::duration_of(const ReadEvent& event) const {
  return time_in(event, event.duration, "dur");
}

Nanos EventCollector::time_in(const ReadEvent& event, const std::optional<Nanos>& time,
                              const char* key) const {
  if (time) return *time;
  std::string fault = fmt::format("has no \"{}\"", key);
  if (parse_number<double>(event.bad_time))
    fault = "has the time " + event.bad_time + ", which is out of range";
  else if (!event.bad_time.empty())
    fault = "has the time " + quote(event.bad_time) + ", which is not a number";
  throw Error(fmt::format("{}: the event {} {}; give it in microseconds", file_,
                          quote(event.slice.name), fault));
}

}  // namespace bubblescope::traces
