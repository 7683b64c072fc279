// Finds forwards and backwards in a profile without annotations, in one pass over the events of a
// step in order of time.
//
// A stretch of the rank's main thread between two messages, or between a forward and a backward, is
// an op: a backward where the autograd engine evaluates functions, a forward where a gradient
// function is created ("fwdbwd" flows begin there). Other stretches, such as splitting the batch or
// scaling gradients, are neither.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sim/ir/counted.h"
#include "sim/ir/error.h"
#include "traces/measured/profile_ops.h"
#include "traces/measured/profile_refusals.h"

namespace bubblescope::traces {

namespace {

/// Profiles of older releases have whole microseconds.
constexpr Nanos kRounding = 1'000;
/// Between an op and the send of its result, the runtime takes less than this.
constexpr Nanos kMaxSendDelay = 1'000'000;

bool matters(Activity activity) {
  constexpr std::array kKinds{
      Activity::kCall,         Activity::kAutograd,  Activity::kGradientFlow,
      Activity::kSend,         Activity::kReceive,   Activity::kDataLoader,
      Activity::kNamedLoading, Activity::kOptimizer, Activity::kBarrier};
  return std::find(kKinds.begin(), kKinds.end(), activity) != kKinds.end();
}

/// Whether only an op, or what is around it, does this.
bool belongs_to_pipeline(const ProfiledEvent& event) {
  return event.activity == Activity::kAutograd || event.activity == Activity::kGradientFlow ||
         event.activity == Activity::kSend || event.activity == Activity::kReceive;
}

bool is_earlier(const ProfiledEvent* event, Nanos time) { return event->start < time; }

/// The thread that posts the messages also runs the forwards.
std::uint32_t find_main_thread(std::span<const ProfiledEvent* const> events) {
  std::map<std::uint32_t, std::size_t> posts;
  for (const ProfiledEvent* event : events)
    if (event->activity == Activity::kSend || event->activity == Activity::kReceive)
      ++posts[event->thread];
  const auto busiest = std::max_element(
      posts.begin(), posts.end(),
      [](const auto& left, const auto& right) { return left.second < right.second; });
  return busiest == posts.end() ? 0 : busiest->first;
}

struct UnannotatedOp {
  OpKind kind = OpKind::kForward;
  std::int32_t microbatch = 0;  ///< counted in order, per kind
  TimeSpan span;
  Nanos loaded_until = 0;  ///< the end of loading data before it
};

/// How messages are posted relative to the ops.
struct UnannotatedSends {
  Nanos computing = 0;     ///< the time of all ops
  std::int32_t early = 0;  ///< calls that begin while an op still computes
  std::int32_t late = 0;   ///< sends long after the op before them has ended
  Nanos late_time = 0;     ///< by how much they are late, together

  void add(const UnannotatedSends& more) {
    computing += more.computing;
    early += more.early;
    late += more.late;
    late_time += more.late_time;
  }
};

struct UnannotatedStep {
  std::uint32_t thread = 0;  ///< which posts the messages
  std::vector<UnannotatedOp> ops;
  std::int32_t forwards = 0;
  std::int32_t backwards = 0;
  std::int32_t receives = 0;  ///< calls
  std::int32_t sends = 0;     ///< calls
  UnannotatedSends posts;
};

class Walk {
 public:
  UnannotatedStep run(std::span<const ProfiledEvent* const> events) && {
    const std::uint32_t main = step_.thread = find_main_thread(events);
    for (const ProfiledEvent* event : events)
      if (event->thread == main || event->activity == Activity::kAutograd) take(*event);
    close();
    return std::move(step_);
  }

 private:
  /// Takes an event that matters.
  void take(const ProfiledEvent& event) {
    const Activity activity = event.activity;
    if (activity == Activity::kAutograd) return take_gradient(event);
    if (activity == Activity::kCall) return take_call(event);
    if (activity == Activity::kGradientFlow) {
      has_flow_ = has_flow_ || is_in_call(event.start);
      return;
    }
    if (activity != Activity::kSend && activity != Activity::kReceive) return pass(event);
    ++(activity == Activity::kSend ? step_.sends : step_.receives);
    post(event);
  }

  /// Nothing within such a call is of an op: a barrier reduces a tensor of its own.
  void pass(const ProfiledEvent& event) {
    close();
    passed_until_ = std::max(passed_until_, event.end);
    if (loads_data(event.activity)) loaded_until_ = std::max(loaded_until_, event.end);
  }

  /// The thread posts a message when its op has computed.
  void post(const ProfiledEvent& event) {
    if (is_open_ && event.start + kRounding < span_.end) ++step_.posts.early;
    if (is_open_ && event.activity == Activity::kSend && event.start > span_.end + kMaxSendDelay) {
      ++step_.posts.late;
      step_.posts.late_time += event.start - span_.end;
    }
    pass(event);
  }

  void take_gradient(const ProfiledEvent& event) {
    if (has_flow_ && !is_backward_) close();
    if (!is_open_ || !is_backward_) {
      // Calls before it without a gradient function do not belong to this op.
      is_open_ = is_backward_ = true;
      span_ = {event.start, event.end};
    }
    span_.end = std::max(span_.end, event.end);
  }

  /// Calls within gradient functions are part of the backward, as is the time between two of them.
  void take_call(const ProfiledEvent& event) {
    if (event.end <= passed_until_) return;
    if (is_backward_ && event.start < span_.end) return;
    if (is_backward_) {
      after_.push_back(event);
      return;
    }
    open_forward(event);
  }

  void open_forward(const ProfiledEvent& event) {
    if (!is_open_) span_ = {event.start, event.end};
    is_open_ = true;
    span_.end = std::max(span_.end, event.end);
  }

  /// A gradient function that is created after a backward begins the next forward.
  bool is_in_call(Nanos start) {
    if (!is_backward_) return is_open_ && start <= span_.end;
    if (after_.empty()) return false;
    std::vector<ProfiledEvent> calls = std::move(after_);
    close();
    for (const ProfiledEvent& call : calls) open_forward(call);
    return true;
  }

  void close() {
    if (is_open_ && (is_backward_ || has_flow_)) {
      std::int32_t& count = is_backward_ ? step_.backwards : step_.forwards;
      step_.posts.computing += span_.end - span_.start;
      step_.ops.push_back(
          {is_backward_ ? OpKind::kBackward : OpKind::kForward, count++, span_, loaded_until_});
    }
    is_open_ = is_backward_ = has_flow_ = false;
    after_.clear();
  }

  UnannotatedStep step_;
  bool is_open_ = false;
  bool is_backward_ = false;
  bool has_flow_ = false;  ///< of a forward: whether it creates a gradient function
  TimeSpan span_;
  Nanos passed_until_ = std::numeric_limits<Nanos>::min();  ///< the end of calls that are of no op
  Nanos loaded_until_ = std::numeric_limits<Nanos>::min();
  std::vector<ProfiledEvent> after_;  ///< calls after a backward, which may begin a forward
};

/// Describes, in whole sentences, messages that are posted within an op or long after it.
std::vector<std::string> describe_sends(const UnannotatedSends& sends) {
  std::vector<std::string> doubts;
  if (sends.early > 0)
    doubts.push_back(
        fmt::format("the thread posted {} while it still computed, by the ranges of its ops: "
                    "ranges are too long, or ops send messages of their own",
                    counted(sends.early, "message")));
  if (sends.late_time > sends.computing / 100)
    doubts.push_back(
        fmt::format("the rank sent {} long after the computation before had ended, together {}: "
                    "gradient functions or calls are missing, or were longer",
                    counted(sends.late, "message"), to_text(sends.late_time)));
  return doubts;
}

/// Leaves out annotations such as "data" around a whole run of the pipeline. `events` are in order.
std::vector<const ProfiledEvent*> without_loading_around_ops(
    std::vector<const ProfiledEvent*> events) {
  std::vector<Nanos> starts;  // of what belongs to the pipeline
  for (const ProfiledEvent* event : events)
    if (belongs_to_pipeline(*event)) starts.push_back(event->start);
  std::erase_if(events, [&starts](const ProfiledEvent* event) {
    if (event->activity != Activity::kNamedLoading) return false;
    const auto inner = std::lower_bound(starts.begin(), starts.end(), event->start);
    return inner != starts.end() && *inner < event->end;
  });
  return events;
}

/// Returns the events that matter to ops, in order of time.
std::vector<const ProfiledEvent*> sort_events(const ChromeEvents& events) {
  std::vector<const ProfiledEvent*> sorted;
  for (const ProfiledEvent& event : events.profiled)
    if (matters(event.activity)) sorted.push_back(&event);
  // A flow belongs to the call that begins with it, and an outer call precedes its inner ones.
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const ProfiledEvent* left, const ProfiledEvent* right) {
                     if (left->start != right->start) return left->start < right->start;
                     return left->end > right->end;
                   });
  return without_loading_around_ops(std::move(sorted));
}

UnannotatedStep find_ops_of_step(const std::vector<const ProfiledEvent*>& events,
                                 const TimeSpan& step) {
  const auto first = std::lower_bound(events.begin(), events.end(), step.start, is_earlier);
  const auto end = std::lower_bound(first, events.end(), step.end, is_earlier);
  return Walk().run({first, end});
}

/// A step that the profile marks, or the whole recording where it marks none: then steps follow
/// from the ops of all ranks.
struct StepRange {
  TimeSpan span;
  std::optional<std::int64_t> number = {};
};

/// Where annotations count steps or micro-batches, rules that read them are better than what
/// follows from the order of ops. Those of ops without a number could not be read without marks.
std::vector<StepRange> list_ranges(const ProfiledRank& profile,
                                   const std::vector<const ProfiledEvent*>& events) {
  std::vector<StepRange> ranges;
  for (const ProfiledEvent& mark : profile.marks.marks())
    ranges.push_back({{mark.start, mark.end}, mark.number});
  const SeenNames& names = profile.events.names;
  const bool count_microbatches =
      names.suggest_op_rules().find("\"microbatch\"") != std::string::npos;
  if (ranges.empty() && !events.empty() && !count_microbatches && names.suggest_step_rule().empty())
    ranges.push_back({{events.front()->start, std::numeric_limits<Nanos>::max()}});
  return ranges;
}

std::string name_range(const StepRange& range) {
  return range.number ? fmt::format("step {}", *range.number) : "the recording";
}

/// Why the order of a step's ops does not tell their micro-batches.
struct Misfit {
  std::string what;
  std::string remedy;
};

/// Forwards and backwards are in the order of micro-batches only if each rank has one stage.
std::optional<Misfit> find_misfit(const UnannotatedStep& step, const StepRange& range,
                                  const ProfilePlace& place) {
  if (step.forwards != step.backwards)
    return Misfit{
        fmt::format("{} has {} but {} between its messages", name_range(range),
                    counted(step.forwards, "forward"), counted(step.backwards, "backward")),
        "; if the step has another run of the pipeline, such as an evaluation, call "
        "profiler.step() after each"};
  const bool at_end = place.rank.value() == 0 || place.rank.value() + 1 == place.ranks;
  const std::int32_t max_receives = step.forwards * (at_end ? 1 : 2);
  if (step.receives <= max_receives) return {};
  return Misfit{
      fmt::format("{} receives {} messages for {} forwards", name_range(range), step.receives,
                  step.forwards),
      ": the rank has several stages, or the step has another run of the pipeline without "
      "backwards, or ranks exchanged shapes, as before a first step; record a later step, and call "
      "profiler.step() after each run"};
}

/// Leaves out steps such as the first of a training, in which ranks also exchange shapes, if more
/// than half of the steps fit. Throws Error if not.
void leave_out(const std::vector<Misfit>& misfits, std::size_t fitting, const std::string& file,
               Remarks& remarks) {
  if (misfits.empty()) return;
  if (misfits.size() >= fitting)
    throw Error(fmt::format("{}: no op is annotated, and {}{}; annotate the ops: {}", file,
                            misfits.front().what, misfits.front().remedy, kNameOps));
  for (const Misfit& misfit : misfits)
    remarks.left_out.push_back(fmt::format(
        "{}: a step is left out: {}; ranks may have exchanged shapes in it, as before a first step",
        file, misfit.what));
}

/// Says that ops follow from messages.
std::string describe_source(const SeenNames& names) {
  constexpr const char* kFollow =
      "forwards and backwards are what computes between messages, and micro-batches are counted in "
      "order";
  const std::string rules = names.suggest_op_rules();
  if (rules.empty()) return fmt::format("no op is annotated: {}", kFollow);
  return fmt::format(
      "no annotation is known as an op's: {}. To read those that name ops, `rules` "
      "can say so: {}",
      kFollow, as_rules_file(rules));
}

/// Adds the ops of a step, or of all.
ProfileOps with_step(ProfileOps found, const UnannotatedStep& step, const StepRange& range,
                     const ProfiledRank& profile) {
  Nanos free_from = range.span.start;
  for (const UnannotatedOp& one : step.ops) {
    ObservedOp op;
    op.op.kind = one.kind;
    op.op.stage = profile.place.rank.value();
    op.op.microbatch = one.microbatch;
    op.step = range.number.value_or(0);
    op.has_step = range.number.has_value();
    op.start = one.span.start;
    op.end = one.span.end;
    found.ranges.spans.push_back({one.span, 0, kNoNumber, op.step, op_class_of(op.op)});
    const Nanos waited_from = std::exchange(free_from, one.span.end);
    if (const auto on_device = observe_on_device(op, one.span, profile.activity)) {
      found.ops.push_back(*on_device);
      continue;
    }
    op.may_hold_waiting = op.start_is_observed = true;
    // Otherwise the first op would include the wait for the step to begin.
    const TimeSpan waiting{waited_from, profile.activity.find_waiting_end(waited_from, op.start)};
    // Data that is loaded once the input has arrived is no part of the op.
    if (waiting.length() > 0) op.start = std::max(waiting.end, one.loaded_until);
    found.ops.push_back(op);
    if (const auto arrival = find_arrival(op, waiting, step.thread, profile.activity))
      found.ops.push_back(*arrival);
  }
  return found;
}

}  // namespace

ProfileOps find_unannotated_ops(const ProfiledRank& profile) {
  ProfileOps found;
  found.ranges.are_annotated = false;
  if (!profile.place.rank) return found;  // its stage is unknown
  const std::vector<const ProfiledEvent*> events = sort_events(profile.events);
  UnannotatedSends sends;
  const std::vector<StepRange> ranges = list_ranges(profile, events);
  std::vector<Misfit> misfits;
  std::size_t fitting = 0;
  for (const StepRange& range : ranges) {
    const UnannotatedStep step = find_ops_of_step(events, range.span);
    // Other kinds of training have forwards and backwards too, but no messages between stages.
    if (step.forwards == 0 || step.sends + step.receives == 0) continue;
    const bool is_last = &range == &ranges.back();
    if (is_last && step.forwards > step.backwards && !found.ops.empty()) {
      found.remarks.notes.push_back(
          fmt::format("{}: {} left out: it has {} forwards and {} backwards, as if it was cut off",
                      profile.file, name_range(range), step.forwards, step.backwards));
      continue;
    }
    if (std::optional<Misfit> misfit = find_misfit(step, range, profile.place)) {
      misfits.push_back(*std::move(misfit));
      continue;
    }
    ++fitting;
    sends.add(step.posts);
    found = with_step(std::move(found), step, range, profile);
  }
  leave_out(misfits, fitting, profile.file, found.remarks);
  for (const std::string& doubt : describe_sends(sends))
    found.remarks.doubts.push_back(profile.file + ": " + doubt);
  if (found.ops.empty()) return found;
  found.remarks.notes.push_back(describe_source(profile.events.names));
  if (!ranges.front().number)
    found.remarks.notes.emplace_back(
        "no step is marked (ProfilerStep#N): a step ends where no rank has a micro-batch in "
        "flight, so that a run of the pipeline is one");
  return found;
}

}  // namespace bubblescope::traces
