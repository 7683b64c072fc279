// Reading Chrome's trace events through json's event interface: nothing is kept that is not asked.
#include "traces/chrome_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <system_error>

#include "sim/ir/error.h"
#include "sim/ir/number.h"
#include "traces/cell.h"
#include "traces/json_node.h"

namespace bubblescope {

namespace {

constexpr Nanos kLatest = std::int64_t{1} << 62;
constexpr std::size_t kMaxKept = 100'000'000;
constexpr std::size_t kMostNested = 200;

/// The fields of the event that is being read.
struct Event {
  ChromeSlice slice;
  std::string phase;
  std::string pid;
  std::string tid;
  std::string given_name;  ///< args.name, of metadata
  std::optional<Nanos> start;
  std::optional<Nanos> duration;
  std::string bad_time;  ///< a time that does not fit, as it stands there
};

/// Where in the file the parser is, as far as that matters.
enum class Place : std::uint8_t { kRoot, kEvents, kEvent, kArgs, kOtherData, kInfo, kElsewhere };

class EventReader : public nlohmann::json_sax<Json> {
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
    const bool events =
        places_.empty() || (places_.back() == Place::kRoot && key_ == "traceEvents");
    places_.push_back(events ? Place::kEvents : Place::kElsewhere);
    return true;
  }
  bool end_array() override {
    places_.pop_back();
    return true;
  }

  /// Chrome lets the last bracket of a bare list be left out.
  bool parse_error(std::size_t byte, const std::string&,
                   const nlohmann::detail::exception& error) override {
    const bool list_lacks_end =
        byte > text_.size() && places_.size() == 1 && places_[0] == Place::kEvents;
    if (!list_lacks_end) throw invalid_json(text_, byte, error, file_);
    return false;
  }

 private:
  void expect_shallow() const {
    if (places_.size() >= kMostNested)
      throw Error(fmt::format("{}: nests more than {} arrays and objects", file_, kMostNested));
  }

  /// The place of an object that begins in `outer` under the current key.
  Place inside(Place outer) const {
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
      case Place::kRoot: found_.is_kineto = found_.is_kineto || key_ == "schemaVersion"; break;
      case Place::kEvent: take_field(value); break;
      case Place::kArgs: take_argument(value); break;
      case Place::kOtherData: found_.other_data[key_] = value; break;
      case Place::kInfo:
        if (key_ == "rank") found_.distributed_rank = parse_number<std::int64_t>(value);
        break;
      case Place::kEvents:
      case Place::kElsewhere: break;
    }
    return true;
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
  }

  bool is_op() const { return !event_.slice.op.empty() || names_op_(event_.slice.name); }

  void finish_slice() {
    if (!is_op()) {
      ++found_.left_out[event_.slice.category];
      return;
    }
    const Nanos start = time(event_.start, "ts");
    event_.slice.start = start;
    // Profilers write -1 for what had not ended; the end of such a slice is not known.
    const Nanos duration = time(event_.duration, "dur");
    if (duration < 0) ++found_.endless;
    event_.slice.end = start + std::max<Nanos>(0, duration);
    keep(std::move(event_.slice));
  }

  void begin_slice() {
    event_.slice.start = time(event_.start, "ts");
    open_[thread_of(event_)].push_back(event_.slice);
  }

  /// An end without a name ends what was begun last.
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
          fmt::format("{} has more than {} ops; cut it into several files", file_, kMaxKept));
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

bool is_chrome_trace(std::string_view text) {
  const std::string_view begin = strip(text.substr(0, 96));
  if (begin.starts_with('[')) return true;
  return begin.starts_with('{') && begin.find("bubblescope-") == begin.npos;
}

ChromeEvents read_chrome_events(std::string_view text, const std::string& file,
                                bool (*names_op)(std::string_view name)) {
  EventReader reader(text, file, names_op);
  Json::sax_parse(text.begin(), text.end(), &reader);
  return std::move(reader).take();
}

}  // namespace bubblescope
