// Reads Chrome's trace events through a streaming JSON parser and keeps only the requested data in
// memory.
#include "traces/measured/chrome_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <system_error>

#include "sim/ir/error.h"
#include "sim/ir/number.h"
#include "traces/files/quote.h"
#include "traces/json/json_node.h"
#include "traces/schedules/cell.h"

namespace bubblescope::traces {

namespace {

constexpr Nanos kLatest = std::int64_t{1} << 62;
constexpr std::size_t kMaxKept = 100'000'000;
constexpr std::string_view kStepMark = "ProfilerStep#";
constexpr std::size_t kMaxNesting = 200;

/// The fields of the event that is being read.
struct Event {
  ChromeSlice slice;
  std::string phase;
  std::string pid;
  std::string tid;
  std::string given_name;  ///< args.name, of metadata
  std::int64_t correlation = 0;
  std::optional<Nanos> start;
  std::optional<Nanos> duration;
  std::string bad_time;  ///< the text of a time that does not fit
};

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

class EventReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  EventReader(std::string_view text, const std::string& file, bool (*names_op)(std::string_view))
      : text_(text), file_(file), names_op_(names_op) {}

  ChromeEvents take() && {
    for (const auto& [thread, open] : open_)
      if (!open.empty()) found_.left_out["begun and never ended"] += std::ssize(open);
    return std::move(found_);
  }

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t value) override { return number(std::to_string(value)); }
  bool number_unsigned(number_unsigned_t value) override { return number(std::to_string(value)); }
  bool number_float(number_float_t, const string_t& text) override { return number(text); }
  bool string(string_t& value) override { return scalar(value); }
  bool binary(binary_t&) override { return true; }
  bool key(string_t& name) override {
    key_ = name;
    return true;
  }

  bool start_object(std::size_t) override {
    expect_shallow();
    const Place place = places_.empty() ? Place::kRoot : inside(places_.back());
    if (place == Place::kEvent) event_ = {};
    if (place == Place::kGroup) found_.groups.emplace_back();
    places_.push_back(place);
    return true;
  }
  bool end_object() override {
    if (places_.back() == Place::kEvent) finish_event();
    places_.pop_back();
    return true;
  }
  bool start_array(std::size_t) override {
    expect_shallow();
    places_.push_back(list_inside(places_.empty() ? Place::kElsewhere : places_.back()));
    return true;
  }
  bool end_array() override {
    places_.pop_back();
    return true;
  }

  /// Chrome allows the last bracket of a bare list to be missing.
  bool parse_error(std::size_t byte, const std::string&,
                   const nlohmann::detail::exception& error) override {
    const bool list_lacks_end =
        byte > text_.size() && places_.size() == 1 && places_[0] == Place::kEvents;
    if (!list_lacks_end) throw invalid_json(text_, byte, error, file_);
    return false;
  }

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
    if (outer == Place::kEvent && key_ == "args") return Place::kArgs;
    if (outer == Place::kRoot && key_ == "otherData") return Place::kOtherData;
    if (outer == Place::kRoot && key_ == "distributedInfo") return Place::kInfo;
    return Place::kElsewhere;
  }

  bool number(const std::string& text) {
    if (!places_.empty() && places_.back() == Place::kEvent && (key_ == "ts" || key_ == "dur"))
      return take_time(text);
    return scalar(text);
  }

  bool take_time(const std::string& text) {
    const std::optional<Nanos> time = parse_micros(text);
    if (!time) event_.bad_time = text;
    (key_ == "ts" ? event_.start : event_.duration) = time;
    return true;
  }

  bool scalar(const std::string& value) {
    if (places_.empty()) return true;
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
    return true;
  }

  void take_root(const std::string& value) {
    found_.is_kineto = found_.is_kineto || key_ == "schemaVersion";
    if (key_ == "host_name") found_.host = value;
  }

  void take_field(const std::string& value) {
    if (key_ == "name") event_.slice.name = value;
    if (key_ == "cat") event_.slice.category = value;
    if (key_ == "ph") event_.phase = value;
    if (key_ == "pid") event_.pid = value;
    if (key_ == "tid") event_.tid = value;
  }

  void take_argument(const std::string& value) {
    if (key_ == "op") event_.slice.op = value;
    if (key_ == "name") event_.given_name = value;
    if (key_ == "step") event_.slice.step = parse_number<std::int64_t>(value);
    if (key_ == "mb_id" || key_ == "microbatch")
      event_.slice.microbatch = parse_number<std::int64_t>(value);
    if (key_ == "model_chunk" || key_ == "chunk")
      event_.slice.chunk = parse_number<std::int64_t>(value);
    if (key_ == "correlation") event_.correlation = parse_number<std::int64_t>(value).value_or(0);
  }

  std::uint32_t thread_of(const Event& event) {
    const auto [found, is_new] = threads_.emplace(std::pair(event.pid, event.tid),
                                                  static_cast<std::uint32_t>(threads_.size()));
    if (is_new) found_.threads.push_back({event.pid, event.tid, ""});
    return found->second;
  }

  void finish_event() {
    if (event_.phase == "M" && event_.slice.name == "thread_name")
      found_.threads[thread_of(event_)].name = event_.given_name;
    if (event_.phase == "X") finish_slice();
    if (event_.phase == "B" && names_op_(event_.slice.name)) begin_slice();
    if (event_.phase == "E") end_slice();
    if (event_.phase == "s" && event_.slice.category == "fwdbwd")
      record_activity(Activity::kGradientFlow, event_.correlation, 0);
  }

  void keep_other_slice() {
    ChromeSlice slice = std::move(event_.slice);
    slice.thread = thread_of(event_);
    slice.start = time(event_.start, "ts");
    slice.end = slice.start + std::max<Nanos>(0, time(event_.duration, "dur"));
    found_.other_slices.push_back(std::move(slice));
  }

  void record_activity(Activity activity, std::int64_t number, Nanos duration) {
    const Nanos start = time(event_.start, "ts");
    found_.profiled.push_back(
        {start, start + std::max<Nanos>(0, duration), number, thread_of(event_), activity});
  }

  /// Records a profiler event that is not an op.
  void note_activity() {
    const std::string& name = event_.slice.name;
    const std::optional<Activity> activity = classify_activity(event_.slice.category, name);
    if (!activity) return;
    const std::int64_t number =
        *activity == Activity::kStep
            ? parse_number<std::int64_t>(std::string_view(name).substr(kStepMark.size()))
                  .value_or(-1)
            : event_.correlation;
    record_activity(*activity, number, time(event_.duration, "dur"));
  }

  bool is_op() const { return !event_.slice.op.empty() || names_op_(event_.slice.name); }

  void finish_slice() {
    if (!is_op()) {
      ++found_.left_out[event_.slice.category];
      note_activity();
      if (event_.slice.step) keep_other_slice();
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

  std::string_view text_;
  const std::string& file_;
  bool (*names_op_)(std::string_view);
  std::vector<Place> places_;
  std::string key_;
  Event event_;
  std::map<std::pair<std::string, std::string>, std::uint32_t> threads_;
  std::map<std::uint32_t, std::vector<ChromeSlice>> open_;  ///< begun on each thread
  ChromeEvents found_;
};

bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }

/// With an exponent, which only small numbers have in practice, a double is exact enough.
std::optional<Nanos> parse_scientific(std::string_view text) {
  const auto micros = parse_number<double>(text);
  if (!micros) return {};
  const double nanos = std::round(*micros * 1000);
  if (!(std::abs(nanos) < static_cast<double>(kLatest))) return {};
  return static_cast<Nanos>(nanos);
}

}  // namespace

std::optional<Nanos> parse_micros(std::string_view text) {
  if (text.find_first_of("eE") != text.npos) return parse_scientific(text);
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  const std::string_view whole = text.substr(0, text.find('.'));
  const std::string_view fraction = text.substr(std::min(text.size(), whole.size() + 1));
  if (whole.empty() || !std::all_of(whole.begin(), whole.end(), is_digit)) return {};
  if (!std::all_of(fraction.begin(), fraction.end(), is_digit)) return {};
  Nanos nanos = 0;
  for (const char digit : whole) {
    if (nanos > kLatest / 10'000) return {};
    nanos = nanos * 10 + (digit - '0');
  }
  for (std::size_t place = 0; place < 3; ++place)
    nanos = nanos * 10 + (place < fraction.size() ? fraction[place] - '0' : 0);
  if (fraction.size() > 3 && fraction[3] >= '5') ++nanos;
  return negative ? -nanos : nanos;
}

std::optional<Activity> classify_activity(std::string_view category, std::string_view name) {
  const auto has = [&](std::string_view part) { return name.find(part) != name.npos; };
  if (category == "cpu_op") {
    if (name.starts_with("autograd::engine::evaluate_function")) return Activity::kAutograd;
    if (name.starts_with("c10d::") && has("send")) return Activity::kSend;
    if (name.starts_with("c10d::") && has("recv")) return Activity::kReceive;
    if (name.starts_with("c10d::barrier")) return Activity::kBarrier;
    // The buffer of a message is allocated like any other tensor, right before its receive.
    if (name.starts_with("c10d::") || name.starts_with("aten::empty")) return {};
    return Activity::kCall;
  }
  if (category == "user_annotation") {
    if (name.starts_with(kStepMark)) return Activity::kStep;
    if (name.starts_with("gloo:recv")) return Activity::kPendingReceive;
    if (name.starts_with("Optimizer.") || name.starts_with("enumerate(DataLoader)"))
      return Activity::kOutside;
    return {};
  }
  if (category == "kernel" || category == "gpu_memcpy" || category == "gpu_memset")
    return name.starts_with("nccl") && has("SendRecv") ? Activity::kMessageKernel
                                                       : Activity::kKernel;
  if (category == "cuda_runtime" || category == "cuda_driver") {
    if (has("Launch") || has("Memcpy") || has("Memset")) return Activity::kLaunch;
  }
  return {};
}

std::string describe_negative_durations(std::int64_t slices) {
  return fmt::format(
      "{} slice(s) have a duration below zero, as what had not ended when the trace did: they are "
      "taken to have none, and what they did is missing from busy times",
      slices);
}

bool is_chrome_trace(std::string_view text) {
  const std::string_view begin = strip(text.substr(0, 96));
  if (begin.starts_with('[')) return true;
  return begin.starts_with('{') && begin.find("bubblescope-") == begin.npos;
}

ChromeEvents read_chrome_events(std::string_view text, const std::string& file,
                                bool (*names_op)(std::string_view name)) {
  EventReader reader(text, file, names_op);
  nlohmann::json::sax_parse(text.begin(), text.end(), &reader);
  return std::move(reader).take();
}

std::string describe_left_out(const ChromeEvents& events) {
  std::string text;
  for (const auto& [category, count] : events.left_out)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count,
                        category.empty() ? "slices without category" : category);
  return text;
}

}  // namespace bubblescope::traces
