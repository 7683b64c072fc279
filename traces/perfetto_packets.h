// The packets of Perfetto's trace format, of which a file is a sequence. Field numbers are those of
// perfetto's protos/perfetto/trace/track_event/*.proto. One sequence writes them all, so that what
// is interned is interned once.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

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

/// What begins on a track.
class PerfettoSlice {
 public:
  /// `track` is the uuid of one that was described.
  PerfettoSlice(std::uint64_t track, Nanos time) : track_(track), time_(time) {}

  std::uint64_t track() const { return track_; }
  Nanos time() const { return time_; }
  /// TrackEvent's fields beside its type and track.
  ProtobufMessage fields;

 private:
  std::uint64_t track_;
  Nanos time_;
};

/// Writes packets to a sink, a piece of many packets at a time.
class PerfettoPackets {
 public:
  explicit PerfettoPackets(const Sink& sink) : sink_(sink) {}

  void describe(const PerfettoTrack& track);

  /// A slice's name, where it occurs once; what repeats is better interned.
  void name(PerfettoSlice& slice, std::string_view name);
  void name_interned(PerfettoSlice& slice, std::string_view name);
  void categorize(PerfettoSlice& slice, std::string_view category);
  void annotate(PerfettoSlice& slice, std::string_view key, std::int64_t value);
  void annotate(PerfettoSlice& slice, std::string_view key, std::string_view value);
  void annotate_true(PerfettoSlice& slice, std::string_view key);
  /// Arrows lead along the slices with the same flow, in the order of time.
  void flow(PerfettoSlice& slice, std::uint64_t flow, bool ends_here);

  void begin(const PerfettoSlice& slice);
  void end(std::uint64_t track, Nanos time);
  void count(std::uint64_t track, Nanos time, std::int64_t value);
  void count(std::uint64_t track, Nanos time, double value);

  /// Gives out what is left.
  void flush();

 private:
  /// The texts of one kind, numbered from 1 in the order in which they come.
  struct Interned {
    std::uint32_t field = 0;  ///< of InternedData
    std::map<std::string, std::uint64_t, std::less<>> number_of = {};
  };

  std::uint64_t intern(Interned& texts, std::string_view text);
  void write(ProtobufMessage packet, bool is_event);
  void write_event(const ProtobufMessage& event, Nanos time);

  const Sink& sink_;
  std::string waiting_;           ///< packets that the sink has not been given yet
  ProtobufMessage new_interned_;  ///< to go with the next event
  bool began_ = false;
  Interned categories_{1};
  Interned names_{2};
  Interned keys_{3};
  Interned values_{29};
};

}  // namespace bubblescope
