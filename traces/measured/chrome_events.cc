// Reads Chrome's trace events through a streaming JSON parser and keeps only the requested data in
// memory.
#include "traces/measured/chrome_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "sim/ir/error.h"
#include "sim/ir/number.h"
#include "traces/files/quote.h"
#include "traces/json/json_node.h"
#include "traces/json/scan_json.h"
#include "traces/measured/chrome_keys.h"
#include "traces/measured/overlap_parts.h"
#include "traces/measured/read_event.h"

namespace bubblescope::traces {

namespace {

constexpr std::size_t kMaxKept = 100'000'000;
constexpr std::size_t kMaxNesting = 200;

/// The parser's position in the structure of the file, as far as it matters.
enum class Place : std::uint8_t {
  kRoot,
  kEvents,
  kEvent,
  kArgs,
  kOtherData,
  kInfo,
  kGroups,
  kGroup,
  kGroupRanks,
  kElsewhere
};

/// Collects events from either parser: the fast one, or the full one that explains faults.
class EventReader : public JsonVisitor {
 public:
  EventReader(const std::string& file, NameMatcher& names) : file_(file), names_(names) {}

  ChromeEvents take() && {
    for (const auto& [thread, open] : open_)
      if (!open.empty()) found_.left_out["begun and never ended"] += std::ssize(open);
    add_base();
    return std::move(found_);
  }

  /// Chrome allows the last bracket of a bare list to be missing.
  bool is_in_bare_list() const { return places_.size() == 1 && places_[0] == Place::kEvents; }

  bool visit_key(std::string_view name) override {
    key_id_ = key_of(name);
    const bool in_event =
        !places_.empty() && (places_.back() == Place::kEvent || places_.back() == Place::kArgs);
    if (!in_event) key_ = name;
    return matters();
  }
  void visit_string(std::string_view value) override { scalar(value); }
  void visit_number(std::string_view text) override {
    if (!places_.empty() && places_.back() == Place::kEvent &&
        (key_id_ == EventKey::kStart || key_id_ == EventKey::kDuration))
      return take_time(text);
    scalar(text);
  }
  void begin_object() override {
    expect_shallow();
    const Place place = places_.empty() ? Place::kRoot : inside(places_.back());
    if (place == Place::kEvent) event_.clear();
    if (place == Place::kGroup) found_.groups.emplace_back();
    places_.push_back(place);
  }
  void end_object() override {
    if (places_.back() == Place::kEvent) finish_event();
    places_.pop_back();
  }
  void begin_array() override {
    expect_shallow();
    places_.push_back(list_inside(places_.empty() ? Place::kElsewhere : places_.back()));
  }
  void end_array() override { places_.pop_back(); }

 private:
  /// The place of a list that begins in `outer` under the current key.
  Place list_inside(Place outer) const {
    if (places_.empty()) return Place::kEvents;
    if (outer == Place::kRoot && key_ == "traceEvents") return Place::kEvents;
    if (outer == Place::kInfo && key_ == "pg_config") return Place::kGroups;
    if (outer == Place::kGroup && key_ == "ranks") return Place::kGroupRanks;
    return Place::kElsewhere;
  }

  void expect_shallow() const {
    if (places_.size() >= kMaxNesting)
      throw Error(fmt::format("{}: nests more than {} arrays and objects", file_, kMaxNesting));
  }

  /// The place of an object that begins in `outer` under the current key.
  Place inside(Place outer) const {
    if (outer == Place::kGroups) return Place::kGroup;
    if (outer == Place::kEvents) return Place::kEvent;
    if (outer == Place::kEvent && key_id_ == EventKey::kArgs) return Place::kArgs;
    if (outer == Place::kRoot && key_ == "otherData") return Place::kOtherData;
    if (outer == Place::kRoot && key_ == "distributedInfo") return Place::kInfo;
    return Place::kElsewhere;
  }

  /// Whether the value of the current key is needed; most arguments of kernels are not.
  bool matters() const {
    if (places_.empty()) return true;
    switch (places_.back()) {
      case Place::kEvent: return key_id_ != EventKey::kOther && key_id_ <= EventKey::kArgs;
      case Place::kArgs: return key_id_ == EventKey::kName || key_id_ >= EventKey::kCorrelation;
      case Place::kElsewhere: return false;
      case Place::kRoot:
      case Place::kEvents:
      case Place::kOtherData:
      case Place::kInfo:
      case Place::kGroups:
      case Place::kGroup:
      case Place::kGroupRanks: return true;
    }
    return true;
  }

  void take_time(std::string_view text) {
    const std::optional<Nanos> time = parse_micros(text);
    if (!time) event_.bad_time = text;
    (key_id_ == EventKey::kStart ? event_.start : event_.duration) = time;
  }

  void scalar(std::string_view value) {
    if (places_.empty()) return;
    switch (places_.back()) {
      case Place::kRoot: take_root(value); break;
      case Place::kEvent: take_field(value); break;
      case Place::kArgs: take_argument(value); break;
      case Place::kOtherData: found_.other_data[key_] = value; break;
      case Place::kInfo:
        if (key_ == "rank") found_.distributed_rank = parse_number<std::int64_t>(value);
        if (key_ == "world_size") found_.world_size = parse_number<std::int64_t>(value);
        break;
      case Place::kGroup:
        if (key_ == "pg_desc") found_.groups.back().description = value;
        break;
      case Place::kGroupRanks:
        if (const auto rank = parse_number<std::int64_t>(value))
          found_.groups.back().ranks.push_back(*rank);
        break;
      case Place::kEvents:
      case Place::kGroups:
      case Place::kElsewhere: break;
    }
  }

  void take_root(std::string_view value) {
    found_.is_kineto = found_.is_kineto || key_ == "schemaVersion";
    if (key_ == "baseTimeNanoseconds") base_ = parse_number<Nanos>(value).value_or(0);
    if (key_ == "host_name") found_.host = value;
  }

  void take_field(std::string_view value) {
    switch (key_id_) {
      case EventKey::kName: event_.slice.name = value; break;
      case EventKey::kCategory: event_.slice.category = value; break;
      case EventKey::kPhase: event_.phase = value; break;
      case EventKey::kProcess: event_.pid = value; break;
      case EventKey::kThread: event_.tid = value; break;
      case EventKey::kFlow:
        event_.flow = parse_number<std::int64_t>(value).value_or(kNoNumber);
        break;
      case EventKey::kStart:
      case EventKey::kDuration:
      case EventKey::kArgs:
      case EventKey::kCorrelation:
      case EventKey::kRunningNumber:
      case EventKey::kGroup:
      case EventKey::kGroupRanks:
      case EventKey::kPeer:
      case EventKey::kOp:
      case EventKey::kStep:
      case EventKey::kMicrobatch:
      case EventKey::kChunk:
      case EventKey::kOther: break;
    }
  }

  void take_argument(std::string_view value) {
    const auto number = [value] { return parse_number<std::int64_t>(value); };
    switch (key_id_) {
      case EventKey::kOp: event_.slice.op = value; break;
      case EventKey::kName: event_.given_name = value; break;
      case EventKey::kStep: event_.slice.step = number(); break;
      case EventKey::kMicrobatch: event_.slice.microbatch = number(); break;
      case EventKey::kChunk: event_.slice.chunk = number(); break;
      case EventKey::kCorrelation: event_.correlation = number().value_or(0); break;
      case EventKey::kGroup: event_.group = value; break;
      case EventKey::kGroupRanks: event_.group_ranks = value; break;
      case EventKey::kPeer: event_.peer = number(); break;
      case EventKey::kRunningNumber: take_running_number(number()); break;
      case EventKey::kCategory:
      case EventKey::kPhase:
      case EventKey::kProcess:
      case EventKey::kThread:
      case EventKey::kStart:
      case EventKey::kDuration:
      case EventKey::kFlow:
      case EventKey::kArgs:
      case EventKey::kOther: break;
    }
  }

  std::uint32_t thread_of(const ReadEvent& event) {
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

  /// Times are relative to the base, which may differ between the files of a job.
  void add_base() {
    constexpr Nanos kLatestBase = std::int64_t{1} << 61;
    if (base_ <= 0 || base_ > kLatestBase) return;
    const auto shift = [this](auto& events) {
      for (auto& event : events) {
        event.start += base_;
        event.end += base_;
      }
    };
    shift(found_.slices);
    shift(found_.parts);
    shift(found_.other_slices);
    shift(found_.profiled);
  }

  void finish_event() {
    if (event_.phase == "M" && event_.slice.name == "thread_name")
      found_.threads[thread_of(event_)].name = event_.given_name;
    if (event_.phase == "X") finish_slice();
    if (event_.phase == "B" && (names_.names_op(event_.slice.name) || names_step())) begin_slice();
    if (event_.phase == "E") end_slice();
    if (event_.slice.category == "fwdbwd" && event_.phase == "s")
      record_activity(Activity::kGradientFlow, event_.flow, 0);
    if (event_.slice.category == "fwdbwd" && event_.phase == "f")
      record_activity(Activity::kGradientEnd, event_.flow, 0);
  }

  void keep_other_slice(std::vector<ChromeSlice>& kept) {
    ChromeSlice& slice = event_.slice;  // moved last, because errors name it
    slice.thread = thread_of(event_);
    slice.start = time(event_.start, "ts");
    slice.end = slice.start + std::max<Nanos>(0, time(event_.duration, "dur"));
    kept.push_back(std::move(slice));
  }

  void record_activity(Activity activity, std::int64_t number, Nanos duration) {
    const Nanos start = time(event_.start, "ts");
    found_.profiled.push_back(
        {start, start + std::max<Nanos>(0, duration), number, thread_of(event_), activity});
  }

  void take_running_number(std::optional<std::int64_t> number) {
    event_.slice.number = number;
    if (number) found_.numbers.add(*number);
  }

  /// Records a profiler event that is not an op.
  void note_activity() {
    const std::string& name = event_.slice.name;
    if (event_.peer) found_.peers[event_.group_ranks].insert(*event_.peer);
    const std::optional<Activity> activity = classify_activity(event_.slice.category, name);
    if (!activity) return;
    record_activity(*activity, event_.number_of(*activity), time(event_.duration, "dur"));
    if (*activity != Activity::kCollective && *activity != Activity::kHostCollective) return;
    found_.profiled.back().collective = classify_collective(name);
    found_.profiled.back().group = classify_group(event_.group);
  }

  bool is_op() { return !event_.slice.op.empty() || names_.names_op(event_.slice.name); }

  /// Records a slice that a rule calls a step; false for any other.
  bool take_step() {
    if (!names_step()) return false;
    const Nanos start = time(event_.start, "ts");
    record_step(event_.slice.name, start, start + std::max<Nanos>(0, time(event_.duration, "dur")));
    return true;
  }

  bool names_step() { return names_.find(event_.slice.name).is_step; }

  /// Steps without a number are counted on their process.
  void record_step(const std::string& name, Nanos start, Nanos end) {
    const std::optional<std::int64_t> number = names_.find(name).step;
    found_.profiled.push_back({start, end, number ? *number : ruled_steps_[event_.pid]++,
                               thread_of(event_), Activity::kStep});
  }

  void finish_slice() {
    if (take_step()) return;
    if (!is_op()) {
      ++found_.left_out[event_.slice.category];
      if (is_named_by_user(event_.slice.category)) found_.names.add(event_.slice.name);
      note_activity();
      if (event_.slice.step)
        keep_other_slice(found_.other_slices);
      else if (event_.slice.category == "user_annotation" && is_part_name(event_.slice.name))
        keep_other_slice(found_.parts);
      return;
    }
    const Nanos start = time(event_.start, "ts");
    event_.slice.start = start;
    // Profilers write -1 for slices that had not ended, so their end is unknown.
    const Nanos duration = time(event_.duration, "dur");
    if (duration < 0) ++found_.negative_durations;
    event_.slice.end = start + std::max<Nanos>(0, duration);
    keep(std::move(event_.slice));
  }

  void begin_slice() {
    event_.slice.start = time(event_.start, "ts");
    open_[thread_of(event_)].push_back(event_.slice);
  }

  /// An end without a name ends the slice that began last.
  void end_slice() {
    std::vector<ChromeSlice>& open = open_[thread_of(event_)];
    const std::string& name = event_.slice.name;
    if (open.empty() || (!name.empty() && open.back().name != name)) return;
    ChromeSlice slice = std::move(open.back());
    open.pop_back();
    slice.end = std::max(slice.start, time(event_.start, "ts"));
    if (names_.find(slice.name).is_step)
      record_step(slice.name, slice.start, slice.end);
    else
      keep(std::move(slice));
  }

  void keep(ChromeSlice slice) {
    if (found_.slices.size() == kMaxKept)
      throw Error(
          fmt::format("{} has more than {} ops; split it into several files", file_, kMaxKept));
    slice.thread = thread_of(event_);
    found_.slices.push_back(std::move(slice));
  }

  Nanos time(const std::optional<Nanos>& time, const char* key) const {
    if (time) return *time;
    throw Error(fmt::format(
        "{}: the event {} {}; give it in microseconds", file_, quote(event_.slice.name),
        event_.bad_time.empty() ? fmt::format("has no \"{}\"", key)
                                : "has the time " + event_.bad_time + ", which is out of range"));
  }

  const std::string& file_;
  NameMatcher& names_;
  std::vector<Place> places_;
  std::string key_;  ///< of what is not an event
  EventKey key_id_ = EventKey::kOther;
  ReadEvent event_;
  std::map<std::pair<std::string, std::string>, std::uint32_t> threads_;
  std::map<std::uint32_t, std::vector<ChromeSlice>> open_;  ///< begun on each thread
  std::uint32_t last_thread_ = 0;
  Nanos base_ = 0;
  std::map<std::string, std::int64_t> ruled_steps_;  ///< by process: without a number of their own
  ChromeEvents found_;
};

}  // namespace

ChromeEvents read_chrome_events(std::string_view text, const std::string& file,
                                NameMatcher& names) {
  EventReader fast(file, names);
  if (scan_json(text, fast)) return std::move(fast).take();
  EventReader reader(file, names);
  parse_json_into(text, file, reader, [&reader] { return reader.is_in_bare_list(); });
  return std::move(reader).take();
}

}  // namespace bubblescope::traces
