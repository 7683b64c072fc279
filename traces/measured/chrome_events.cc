// Reads Chrome's trace events through a streaming JSON parser and keeps only the requested data in
// memory.
#include "traces/measured/chrome_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <span>

#include "sim/ir/error.h"
#include "sim/ir/number.h"
#include "traces/json/json_node.h"
#include "traces/json/scan_json.h"
#include "traces/measured/chrome_keys.h"
#include "traces/measured/event_collector.h"
#include "traces/measured/read_event.h"

namespace bubblescope::traces {

namespace {

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
  EventReader(const std::string& file, NameMatcher& names)
      : file_(file), ruled_(names.arguments()), collector_(file, names, found_) {}

  ChromeEvents take() && {
    collector_.finish(base_);
    return std::move(found_);
  }

  /// Chrome allows the last bracket of a bare list to be missing.
  bool is_in_bare_list() const { return places_.size() == 1 && places_[0] == Place::kEvents; }

  bool visit_key(std::string_view name) override {
    key_id_ = key_of(name);
    ruled_argument_ = ruled_.empty() ? ruled_.size() : find_ruled(name);
    const bool in_event =
        !places_.empty() && (places_.back() == Place::kEvent || places_.back() == Place::kArgs);
    if (!in_event) key_ = name;
    return matters();
  }
  void visit_string(std::string_view value) override { scalar(value); }
  void visit_number(std::string_view text) override { scalar(text); }
  void begin_object() override {
    expect_shallow();
    const Place place = places_.empty() ? Place::kRoot : inside(places_.back());
    if (place == Place::kEvent) event_.clear();
    if (place == Place::kGroup) found_.groups.emplace_back();
    places_.push_back(place);
  }
  void end_object() override {
    if (places_.back() == Place::kEvent) collector_.add(event_);
    places_.pop_back();
  }
  void begin_array() override {
    expect_shallow();
    places_.push_back(list_inside(places_.empty() ? Place::kElsewhere : places_.back()));
    found_.has_list = found_.has_list || places_.back() == Place::kEvents;
  }
  void end_array() override { places_.pop_back(); }

 private:
  /// Returns the place of a list that begins in `outer` under the current key.
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

  /// Returns the place of an object that begins in `outer` under the current key.
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
      case Place::kArgs:
        return key_id_ == EventKey::kName || key_id_ >= EventKey::kCorrelation ||
               ruled_argument_ < ruled_.size();
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

  /// The place of an argument that rules use; their number for any other.
  std::size_t find_ruled(std::string_view name) const {
    return static_cast<std::size_t>(std::find(ruled_.begin(), ruled_.end(), name) - ruled_.begin());
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
    if (key_ == "schema") found_.schema = value;
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
      case EventKey::kDuration: take_time(value); break;  // a number, or one in quotes
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
      case EventKey::kStage:
      case EventKey::kPipelineRank:
      case EventKey::kReplica:
      case EventKey::kTensorPeer:
      case EventKey::kRank:
      case EventKey::kSortIndex:
      case EventKey::kOther: break;
    }
  }

  void take_argument(std::string_view value) {
    if (ruled_argument_ < ruled_.size()) {
      event_.slice.arguments.resize(ruled_.size());
      event_.slice.arguments[ruled_argument_] = value;
    }
    const auto number = [value] { return parse_number<std::int64_t>(value); };
    switch (key_id_) {
      case EventKey::kOp: event_.slice.op = value; break;
      case EventKey::kName: event_.given_name = value; break;
      case EventKey::kStep: event_.slice.step = number(); break;
      case EventKey::kMicrobatch: event_.slice.microbatch = number(); break;
      case EventKey::kChunk: event_.slice.chunk = number(); break;
      case EventKey::kStage: event_.slice.stage = number(); break;
      case EventKey::kPipelineRank: event_.slice.pp_rank = number(); break;
      case EventKey::kReplica: event_.slice.replica = number(); break;
      case EventKey::kTensorPeer: event_.slice.tensor = number(); break;
      case EventKey::kRank: event_.slice.rank = number(); break;
      case EventKey::kSortIndex: event_.sort_index = number(); break;
      case EventKey::kCorrelation: event_.correlation = number().value_or(0); break;
      case EventKey::kGroup: event_.group = value; break;
      case EventKey::kGroupRanks: event_.group_ranks = value; break;
      case EventKey::kPeer: event_.peer = number(); break;
      case EventKey::kRunningNumber: event_.slice.number = number(); break;
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

  const std::string& file_;
  std::vector<Place> places_;
  std::string key_;  ///< of what is not an event
  EventKey key_id_ = EventKey::kOther;
  std::span<const std::string> ruled_;  ///< the arguments that rules use
  std::size_t ruled_argument_ = 0;      ///< the current key's place in these
  ReadEvent event_;
  Nanos base_ = 0;
  ChromeEvents found_;
  EventCollector collector_;
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
