// The packets of Perfetto's trace format; a file is a sequence of them. Field numbers are those of
// perfetto's protos/perfetto/trace/track_event/*.proto. All packets share one sequence, so that
// each string is interned once.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "sim/ir/units.h"
#include "traces/files/file.h"
#include "traces/files/protobuf.h"

namespace bubblescope::traces {

/// A row of the viewer, with a unique id other than 0.
struct PerfettoTrack {
  std::uint64_t uuid = 0;
  std::uint64_t parent = 0;  ///< 0: none
  std::string name;
  std::int32_t place = 0;     ///< order among its siblings
  std::int32_t process = 0;   ///< process id; 0 for a track within a process
  std::string unit;           ///< unit of a counter; empty for a track of slices
  bool counts_bytes = false;  ///< the counter counts bytes
};

/// Interned strings, by number. Each is written once, with the first event after its number was
/// asked for.
class PerfettoTexts {
 public:
  enum class Use : std::uint8_t { kCategory, kName, kKey, kValue };

  std::uint64_t number_of(Use use, std::string_view text);
  /// Returns InternedData with the strings that were not written yet; empty where all were.
  ProtobufMessage take_new();

 private:
  std::map<std::pair<Use, std::string>, std::uint64_t> numbers_;
  ProtobufMessage new_;
};

/// The begin event of a slice. Refers to the interned strings of its PerfettoPackets.
class PerfettoSlice {
 public:
  PerfettoSlice(PerfettoTexts& texts, std::uint64_t track, Nanos time);

  /// For names that occur once; repeated_name() is shorter for others.
  PerfettoSlice& name(std::string_view name);
  PerfettoSlice& repeated_name(std::string_view name);
  PerfettoSlice& category(std::string_view category);
  PerfettoSlice& annotate(std::string_view key, std::int64_t value);
  PerfettoSlice& annotate(std::string_view key, std::string_view value);
  PerfettoSlice& mark(std::string_view key);  ///< annotates "true"
  /// Arrows connect the slices with the same flow in the order of time, up to end_flow().
  PerfettoSlice& flow(std::uint64_t flow);
  PerfettoSlice& end_flow(std::uint64_t flow);

 private:
  friend class PerfettoPackets;

  PerfettoTexts& texts_;
  Nanos time_;
  ProtobufMessage event_;
};

/// Writes packets to a sink, many at a time.
class PerfettoPackets {
 public:
  explicit PerfettoPackets(const Sink& sink) : sink_(sink) {}

  void describe(const PerfettoTrack& track);

  PerfettoSlice slice(std::uint64_t track, Nanos time) { return {texts_, track, time}; }
  void begin(const PerfettoSlice& slice);
  void end(std::uint64_t track, Nanos time);
  void count(std::uint64_t track, Nanos time, std::int64_t value);
  void count(std::uint64_t track, Nanos time, double value);

  /// Writes the remaining packets.
  void flush();

 private:
  void write(ProtobufMessage packet, bool is_event);
  void write_event(const ProtobufMessage& event, Nanos time);

  const Sink& sink_;
  std::string waiting_;  ///< packets not yet given to the sink
  bool began_ = false;
  PerfettoTexts texts_;
};

}  // namespace bubblescope::traces
