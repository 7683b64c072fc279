// How much a file may ask of this process before it is refused.
//
// A file is held once as text and once as what was made of it; everything here bounds the former,
// so that a small file cannot ask for much: what it unpacks to, and how many json values it has.
#pragma once

#include <cstddef>
#include <string>

#include "sim/ir/units.h"

namespace bubblescope {

/// The most bytes that a file may have, unpacked; for the whole process, as it follows from one
/// flag of the command line (--max-input) and every reader obeys it.
struct InputLimit {
  Bytes size = Bytes{4} << 30;
  /// Whether the user named the size: then it alone counts. Else streams, whose size is not known
  /// before they end, may have 512 MiB, and what is packed may not grow 200-fold beyond 64 MiB.
  bool is_given = false;
};

const InputLimit& input_limit();

/// Called once, before any file is read.
void set_max_input(Bytes size);

/// The most bytes of a stream.
std::size_t most_streamed();
/// The most bytes that may come out of the first `packed` ones of a packed file.
std::size_t most_unpacked(std::size_t packed);
/// The most memory that a json text's values may take.
std::size_t most_parsed(std::size_t text);

/// What the reader of a larger file says: "FILE is larger than 4 GiB; ...".
std::string too_large(const std::string& file, std::size_t most);

}  // namespace bubblescope
