// Limits on the memory that an input file may take.
//
// A file is in memory twice, as text and as what was parsed from it. The limits bound the unpacked
// text and the number of json values, so that a small file cannot ask for much.
#pragma once

#include <cstddef>
#include <string>

#include "sim/ir/units.h"

namespace bubblescope::traces {

/// The maximum size of an unpacked file. It is global because every reader obeys it, in any thread.
struct InputLimit {
  Bytes size = Bytes{4} << 30;
  /// Whether the user set the size: then only the size counts. Otherwise streams, whose size is
  /// unknown until they end, may have 512 MiB, and packed files may not grow 200-fold beyond 64
  /// MiB.
  bool is_given = false;
};

InputLimit input_limit();

/// Called before any file is read.
void set_max_input(Bytes size);

/// Restores the limit in the end, for a process that reads the files of several calls.
class InputLimitScope {
 public:
  InputLimitScope() : saved_(input_limit()) {}
  ~InputLimitScope();
  InputLimitScope(const InputLimitScope&) = delete;
  InputLimitScope& operator=(const InputLimitScope&) = delete;

 private:
  InputLimit saved_;
};

/// Returns the maximum size of a stream.
std::size_t max_streamed();
/// The maximum number of bytes that the first `packed` bytes of a packed file may unpack to.
std::size_t max_unpacked(std::size_t packed);
/// Returns the maximum memory for the values of a json text.
std::size_t max_parsed(std::size_t text);

/// Returns the error text for a larger file: "FILE is larger than 4 GiB; ...".
std::string describe_too_large(const std::string& file, std::size_t max_size);

}  // namespace bubblescope::traces
