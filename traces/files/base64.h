// Integers as text: variable-length bytes in base64, written to a sink as they are added.
#pragma once

#include <cstdint>
#include <string>

#include "traces/files/file.h"

namespace bubblescope::traces {

/// Small numbers take few characters. A number is written 7 bits per byte, lowest bits first; the
/// highest bit of a byte says that more follow. Signed numbers are zigzag-encoded: 0, -1, 1, -2
/// become 0, 1, 2, 3.
class Base64Numbers {
 public:
  explicit Base64Numbers(const Sink& sink) : sink_(sink) {}

  void add(std::uint64_t number);
  void add_signed(std::int64_t number);
  /// Writes the remaining bytes, padded.
  void finish();

 private:
  void encode_groups();

  const Sink& sink_;
  std::string bytes_;
};

}  // namespace bubblescope::traces
