// Follows https://protobuf.dev/programming-guides/encoding/ and perfetto's protos.
#include "tests/support/perfetto_reader.h"

#include <bit>
#include <cstring>
#include <stdexcept>

namespace bubblescope::tests {

namespace {

/// One field: a number, or the bytes of a text or message.
struct Field {
  std::uint64_t number = 0;
  std::uint64_t value = 0;
  std::string_view bytes;

  std::int64_t integer() const { return static_cast<std::int64_t>(value); }
};

std::uint64_t take_varint(std::string_view& rest) {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (rest.empty()) break;
    const auto byte = static_cast<std::uint8_t>(rest.front());
    rest.remove_prefix(1);
    value |= std::uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return value;
  }
  throw std::runtime_error("a varint has no end");
}

std::uint64_t take_fixed64(std::string_view& rest) {
  if (rest.size() < 8) throw std::runtime_error("a fixed64 is cut short");
  std::uint64_t value = 0;
  std::memcpy(&value, rest.data(), 8);
  rest.remove_prefix(8);
  return value;
}

std::vector<Field> fields_of(std::string_view rest) {
  std::vector<Field> fields;
  while (!rest.empty()) {
    const std::uint64_t key = take_varint(rest);
    Field field{key >> 3, 0, {}};
    switch (key & 7) {
      case 0: field.value = take_varint(rest); break;
      case 1: field.value = take_fixed64(rest); break;
      case 2: {
        const std::uint64_t size = take_varint(rest);
        if (size > rest.size()) throw std::runtime_error("a field is longer than its message");
        field.bytes = rest.substr(0, size);
        rest.remove_prefix(size);
        break;
      }
      default: throw std::runtime_error("an unknown wire type");
    }
    fields.push_back(field);
  }
  return fields;
}

class Reader {
 public:
  PerfettoFile read(std::string_view bytes) && {
    for (const Field& packet : fields_of(bytes)) {
      if (packet.number != 1) throw std::runtime_error("the file has something beside packets");
      read_packet(fields_of(packet.bytes));
    }
    for (const auto& [track, slices] : open_)
      if (!slices.empty()) throw std::runtime_error("a slice has no end");
    return std::move(file_);
  }

 private:
  void read_packet(const std::vector<Field>& packet) {
    Nanos time = 0;
    std::string_view event;
    for (const Field& field : packet) {
      if (field.number == 8) time = field.integer();
      if (field.number == 12) read_interned(field.bytes);
      if (field.number == 11) event = field.bytes;
      if (field.number == 60) read_track(field.bytes);
    }
    if (!event.empty()) read_event(fields_of(event), time);
  }

  void read_interned(std::string_view bytes) {
    for (const Field& kind : fields_of(bytes)) {
      std::uint64_t number = 0;
      std::string text;
      for (const Field& field : fields_of(kind.bytes)) {
        if (field.number == 1) number = field.value;
        if (field.number == 2) text = field.bytes;
      }
      if (!interned_[kind.number].emplace(number, text).second)
        throw std::runtime_error("a number is interned twice");
    }
  }

  void read_track(std::string_view bytes) {
    ReadTrack track;
    for (const Field& field : fields_of(bytes)) {
      if (field.number == 1) track.uuid = field.value;
      if (field.number == 2) track.name = field.bytes;
      if (field.number == 5) track.parent = field.value;
      if (field.number == 8) track.counts = true;
      if (field.number == 12) track.place = field.integer();
      if (field.number == 3) track.process = fields_of(field.bytes).at(0).integer();
    }
    if (!file_.tracks.emplace(track.uuid, track).second)
      throw std::runtime_error("a track is described twice");
  }

  void read_event(const std::vector<Field>& event, Nanos time) {
    std::uint64_t type = 0;
    ReadSlice slice;
    ReadCount count{0, time, 0};
    for (const Field& field : event) {
      if (field.number == 9) type = field.value;
      if (field.number == 11) slice.track = count.track = field.value;
      if (field.number == 30) count.value = static_cast<double>(field.integer());
      if (field.number == 44) count.value = std::bit_cast<double>(field.value);
      read_slice_field(slice, field);
    }
    if (!file_.tracks.contains(slice.track)) throw std::runtime_error("a track is unknown");
    std::vector<std::size_t>& open = open_[slice.track];
    slice.start = slice.end = time;
    if (type == 4) file_.counts.push_back(count);
    if (type == 1) {
      open.push_back(file_.slices.size());
      file_.slices.push_back(slice);
    }
    if (type != 2) return;
    if (open.empty()) throw std::runtime_error("an end has no begin");
    file_.slices[open.back()].end = time;
    open.pop_back();
  }

  void read_slice_field(ReadSlice& slice, const Field& field) const {
    if (field.number == 3) slice.category = interned_.at(1).at(field.value);
    if (field.number == 4) slice.annotations.insert(read_annotation(field.bytes));
    if (field.number == 10) slice.name = interned_.at(2).at(field.value);
    if (field.number == 23) slice.name = field.bytes;
    if (field.number == 47) slice.flows.push_back(field.value);
    if (field.number == 48) slice.ended_flows.push_back(field.value);
  }

  std::pair<std::string, ReadValue> read_annotation(std::string_view bytes) const {
    std::pair<std::string, ReadValue> annotation;
    for (const Field& field : fields_of(bytes)) {
      if (field.number == 1) annotation.first = interned_.at(3).at(field.value);
      if (field.number == 2) annotation.second = field.value == 1;
      if (field.number == 4) annotation.second = field.integer();
      if (field.number == 17) annotation.second = interned_.at(29).at(field.value);
    }
    return annotation;
  }

  PerfettoFile file_;
  std::map<std::uint64_t, std::map<std::uint64_t, std::string>> interned_;
  std::map<std::uint64_t, std::vector<std::size_t>> open_;  ///< per track, into the slices
};

}  // namespace

std::string PerfettoFile::path(std::uint64_t track) const {
  const ReadTrack& read = tracks.at(track);
  return read.parent == 0 ? read.name : path(read.parent) + "/" + read.name;
}

PerfettoFile read_perfetto(std::string_view bytes) { return Reader().read(bytes); }

}  // namespace bubblescope::tests
