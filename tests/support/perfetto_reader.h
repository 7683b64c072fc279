// Reads Perfetto's trace format as a viewer does, field by field, independently of the writer.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sim/ir/units.h"

namespace bubblescope::tests {

struct ReadTrack {
  std::uint64_t uuid = 0;
  std::uint64_t parent = 0;
  std::string name;
  std::int64_t process = 0;  ///< its pid; 0 for a track that is not a process
  std::int64_t place = 0;    ///< among its siblings
  bool counts = false;
};

using ReadValue = std::variant<std::int64_t, double, bool, std::string>;

struct ReadSlice {
  std::uint64_t track = 0;
  std::string name;
  std::string category;
  Nanos start = 0;
  Nanos end = 0;
  std::map<std::string, ReadValue> annotations;
  std::vector<std::uint64_t> flows;        ///< flows that pass it
  std::vector<std::uint64_t> ended_flows;  ///< flows that end at it
};

struct ReadCount {
  std::uint64_t track = 0;
  Nanos time = 0;
  double value = 0;
};

struct PerfettoFile {
  std::map<std::uint64_t, ReadTrack> tracks;
  std::vector<ReadSlice> slices;  ///< in the order in which they begin in the file
  std::vector<ReadCount> counts;

  /// "rank 0/compute"; for a process its own name.
  std::string path(std::uint64_t track) const;
};

/// Throws std::runtime_error for an invalid file: an unknown wire type, a text that was not
/// interned, a track that was not described, an end without a begin, a slice without an end.
PerfettoFile read_perfetto(std::string_view bytes);

}  // namespace bubblescope::tests
