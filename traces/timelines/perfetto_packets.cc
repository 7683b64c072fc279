// Implements https://perfetto.dev/docs/reference/synthetic-track-event and its protos.
#include "traces/timelines/perfetto_packets.h"

#include <utility>

namespace bubblescope::traces {

namespace {

constexpr std::size_t kPieceBytes = 1 << 20;

// Fields, by message.
constexpr std::uint32_t kTracePacket = 1;
namespace packet {
constexpr std::uint32_t kTimestamp = 8;
constexpr std::uint32_t kSequence = 10;
constexpr std::uint32_t kTrackEvent = 11;
constexpr std::uint32_t kInternedData = 12;
constexpr std::uint32_t kSequenceFlags = 13;
constexpr std::uint32_t kTrackDescriptor = 60;
}  // namespace packet
namespace descriptor {
constexpr std::uint32_t kUuid = 1;
constexpr std::uint32_t kName = 2;
constexpr std::uint32_t kProcess = 3;
constexpr std::uint32_t kParent = 5;
constexpr std::uint32_t kCounter = 8;
constexpr std::uint32_t kChildOrdering = 11;
constexpr std::uint32_t kSiblingOrderRank = 12;
}  // namespace descriptor
namespace process {
constexpr std::uint32_t kPid = 1;
constexpr std::uint32_t kSortIndex = 3;
constexpr std::uint32_t kName = 6;
}  // namespace process
namespace counter {
constexpr std::uint32_t kUnit = 3;
constexpr std::uint32_t kUnitName = 6;
}  // namespace counter
namespace event {
constexpr std::uint32_t kCategoryIids = 3;
constexpr std::uint32_t kDebugAnnotations = 4;
constexpr std::uint32_t kType = 9;
constexpr std::uint32_t kNameIid = 10;
constexpr std::uint32_t kTrackUuid = 11;
constexpr std::uint32_t kName = 23;
constexpr std::uint32_t kCounterValue = 30;
constexpr std::uint32_t kDoubleCounterValue = 44;
constexpr std::uint32_t kFlowIds = 47;
constexpr std::uint32_t kTerminatingFlowIds = 48;
}  // namespace event
namespace annotation {
constexpr std::uint32_t kNameIid = 1;
constexpr std::uint32_t kBool = 2;
constexpr std::uint32_t kInt = 4;
constexpr std::uint32_t kStringIid = 17;
}  // namespace annotation
namespace interned {
constexpr std::uint32_t kIid = 1;
constexpr std::uint32_t kText = 2;
}  // namespace interned

// Values of enums.
constexpr std::uint64_t kSliceBegin = 1;
constexpr std::uint64_t kSliceEnd = 2;
constexpr std::uint64_t kCounterEvent = 4;
constexpr std::uint64_t kExplicitOrder = 3;
constexpr std::uint64_t kUnitBytes = 3;
constexpr std::uint64_t kStateCleared = 1;
constexpr std::uint64_t kNeedsState = 2;

constexpr std::uint64_t kOnlySequence = 1;

std::uint64_t unsigned_of(std::int64_t value) { return static_cast<std::uint64_t>(value); }

/// Returns the field of InternedData for each use.
std::uint32_t field_of(PerfettoTexts::Use use) {
  switch (use) {
    case PerfettoTexts::Use::kCategory: return 1;
    case PerfettoTexts::Use::kName: return 2;
    case PerfettoTexts::Use::kKey: return 3;
    case PerfettoTexts::Use::kValue: return 29;
  }
  return 0;
}

ProtobufMessage describe_counter(const PerfettoTrack& track) {
  ProtobufMessage counter;
  if (track.counts_bytes) return std::move(counter.integer(counter::kUnit, kUnitBytes));
  return std::move(counter.text(counter::kUnitName, track.unit));
}

ProtobufMessage event_on(std::uint64_t track, std::uint64_t type) {
  ProtobufMessage event;
  event.integer(event::kType, type).integer(event::kTrackUuid, track);
  return event;
}

}  // namespace

void PerfettoPackets::describe(const PerfettoTrack& track) {
  ProtobufMessage fields;
  fields.integer(descriptor::kUuid, track.uuid);
  if (track.parent != 0) fields.integer(descriptor::kParent, track.parent);
  fields.text(descriptor::kName, track.name);
  if (track.process != 0) {
    ProtobufMessage process;
    process.integer(process::kPid, unsigned_of(track.process))
        .integer(process::kSortIndex, unsigned_of(track.place))
        .text(process::kName, track.name);
    fields.message(descriptor::kProcess, process);
  }
  const bool is_counter = track.counts_bytes || !track.unit.empty();
  if (is_counter) fields.message(descriptor::kCounter, describe_counter(track));
  fields.integer(descriptor::kChildOrdering, kExplicitOrder);
  fields.integer(descriptor::kSiblingOrderRank, unsigned_of(track.place));
  ProtobufMessage packet;
  packet.message(packet::kTrackDescriptor, fields);
  write(std::move(packet), false);
}

std::uint64_t PerfettoTexts::number_of(Use use, std::string_view text) {
  const auto [found, is_new] =
      numbers_.emplace(std::pair(use, std::string(text)), numbers_.size() + 1);
  if (!is_new) return found->second;
  ProtobufMessage entry;
  entry.integer(interned::kIid, found->second).text(interned::kText, text);
  new_.message(field_of(use), entry);
  return found->second;
}

ProtobufMessage PerfettoTexts::take_new() { return std::exchange(new_, {}); }

PerfettoSlice::PerfettoSlice(PerfettoTexts& texts, std::uint64_t track, Nanos time)
    : texts_(texts), time_(time), event_(event_on(track, kSliceBegin)) {}

PerfettoSlice& PerfettoSlice::name(std::string_view name) {
  event_.text(event::kName, name);
  return *this;
}

PerfettoSlice& PerfettoSlice::repeated_name(std::string_view name) {
  event_.integer(event::kNameIid, texts_.number_of(PerfettoTexts::Use::kName, name));
  return *this;
}

PerfettoSlice& PerfettoSlice::category(std::string_view category) {
  event_.integer(event::kCategoryIids, texts_.number_of(PerfettoTexts::Use::kCategory, category));
  return *this;
}

PerfettoSlice& PerfettoSlice::annotate(std::string_view key, std::int64_t value) {
  ProtobufMessage entry;
  entry.integer(annotation::kNameIid, texts_.number_of(PerfettoTexts::Use::kKey, key))
      .integer(annotation::kInt, unsigned_of(value));
  event_.message(event::kDebugAnnotations, entry);
  return *this;
}

PerfettoSlice& PerfettoSlice::annotate(std::string_view key, std::string_view value) {
  ProtobufMessage entry;
  entry.integer(annotation::kNameIid, texts_.number_of(PerfettoTexts::Use::kKey, key))
      .integer(annotation::kStringIid, texts_.number_of(PerfettoTexts::Use::kValue, value));
  event_.message(event::kDebugAnnotations, entry);
  return *this;
}

PerfettoSlice& PerfettoSlice::mark(std::string_view key) {
  ProtobufMessage entry;
  entry.integer(annotation::kNameIid, texts_.number_of(PerfettoTexts::Use::kKey, key))
      .integer(annotation::kBool, 1);
  event_.message(event::kDebugAnnotations, entry);
  return *this;
}

PerfettoSlice& PerfettoSlice::flow(std::uint64_t flow) {
  event_.fixed64(event::kFlowIds, flow);
  return *this;
}

PerfettoSlice& PerfettoSlice::end_flow(std::uint64_t flow) {
  event_.fixed64(event::kTerminatingFlowIds, flow);
  return *this;
}

void PerfettoPackets::begin(const PerfettoSlice& slice) { write_event(slice.event_, slice.time_); }

void PerfettoPackets::end(std::uint64_t track, Nanos time) {
  write_event(event_on(track, kSliceEnd), time);
}

void PerfettoPackets::count(std::uint64_t track, Nanos time, std::int64_t value) {
  write_event(event_on(track, kCounterEvent).integer(event::kCounterValue, unsigned_of(value)),
              time);
}

void PerfettoPackets::count(std::uint64_t track, Nanos time, double value) {
  write_event(event_on(track, kCounterEvent).real(event::kDoubleCounterValue, value), time);
}

void PerfettoPackets::write_event(const ProtobufMessage& event, Nanos time) {
  ProtobufMessage packet;
  packet.integer(packet::kTimestamp, unsigned_of(time));
  const ProtobufMessage told = texts_.take_new();
  if (!told.empty()) packet.message(packet::kInternedData, told);
  packet.message(packet::kTrackEvent, event);
  write(std::move(packet), true);
}

/// The first packet resets interned data; every event refers to it.
void PerfettoPackets::write(ProtobufMessage packet, bool is_event) {
  packet.integer(packet::kSequence, kOnlySequence);
  const std::uint64_t flags = (began_ ? 0 : kStateCleared) | (is_event ? kNeedsState : 0);
  if (flags != 0) packet.integer(packet::kSequenceFlags, flags);
  began_ = true;
  ProtobufMessage trace;
  waiting_ += trace.message(kTracePacket, packet).bytes();
  if (waiting_.size() < kPieceBytes) return;
  flush();
}

void PerfettoPackets::flush() {
  if (!waiting_.empty()) sink_(waiting_);
  waiting_.clear();
}

}  // namespace bubblescope::traces
