// The packets of Perfetto's trace format, of which a file is a sequence. Field numbers are those of
// perfetto's protos/perfetto/trace/track_event/*.proto. One sequence writes them all, so that what
// is interned is interned once.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "sim/ir/units.h"
#include "traces/format.h"
#include "traces/protobuf.h"

namespace bubblescope {

/// A row of the viewer, under its own number, which is not 0.
struct PerfettoTrack {
  std::uint64_t uuid = 0;
  std::uint64_t parent = 0;  ///< 0: none
  std::string name;
  std::int32_t place = 0;     ///< among its siblings
  std::int32_t process = 0;   ///< its number as a process; 0 for a track within one
  std::string unit;           ///< of a counter; empty for a track of slices
  bool counts_bytes = false;  ///< a counter of them
};

/// The texts that occur again and again, by number. Each is told once, with the first event behind
/// the one that asked for its number.
class PerfettoTexts {
 public:
  enum class Use : std::uint8_t { kCategory, kName, kKey, kValue };

  std::uint64_t number_of(Use use, std::string_view text);
  /// InternedData with what has not been told yet; empty where all has.
  ProtobufMessage take_new();

 private:
  std::map<std::pair<Use, std::string>, std::uint64_t> numbers_;
  ProtobufMessage new_;
};

/// What begins on a track. Refers to the texts of the packets that it was made for.
class PerfettoSlice {
 public:
  PerfettoSlice(PerfettoTexts& texts, std::uint64_t track, Nanos time);

  /// For names that occur once; those that repeat are shorter by number.
  PerfettoSlice& name(std::string_view name);
  PerfettoSlice& repeated_name(std::string_view name);
  PerfettoSlice& category(std::string_view category);
  PerfettoSlice& annotate(std::string_view key, std::int64_t value);
  PerfettoSlice& annotate(std::string_view key, std::string_view value);
  PerfettoSlice& mark(std::string_view key);  ///< annotates "true"
  /// Arrows lead along the slices with the same flow, in the order of time, to where it ends.
  PerfettoSlice& flow(std::uint64_t flow);
  PerfettoSlice& end_flow(std::uint64_t flow);

 private:
  friend class PerfettoPackets;

  PerfettoTexts& texts_;
  Nanos time_;
  ProtobufMessage event_;
};

/// Writes packets to a sink, a piece of many packets at a time.
class PerfettoPackets {
 public:
  explicit PerfettoPackets(const Sink& sink) : sink_(sink) {}

  void describe(const PerfettoTrack& track);

  PerfettoSlice slice(std::uint64_t track, Nanos time) { return {texts_, track, time}; }
  void begin(const PerfettoSlice& slice);
  void end(std::uint64_t track, Nanos time);
  void count(std::uint64_t track, Nanos time, std::int64_t value);
  void count(std::uint64_t track, Nanos time, double value);

  /// Gives out what is left.
  void flush();

 private:
  void write(ProtobufMessage packet, bool is_event);
  void write_event(const ProtobufMessage& event, Nanos time);

  const Sink& sink_;
  std::string waiting_;  ///< packets that the sink has not been given yet
  bool began_ = false;
  PerfettoTexts texts_;
};

}  // namespace bubblescope
