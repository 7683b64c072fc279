// Integers as text: variable-length bytes in base64, given to a sink as they come.
#pragma once

#include <cstdint>
#include <string>

#include "traces/format.h"

namespace bubblescope {

/// Small numbers take few characters. Every number is 7 bits a byte, the lowest first, the highest
/// bit telling that more follow; signed ones are folded first: 0, -1, 1, -2 are 0, 1, 2, 3.
class Base64Numbers {
 public:
  explicit Base64Numbers(const Sink& sink) : sink_(sink) {}

  void add(std::uint64_t number);
  void add_signed(std::int64_t number);
  /// Gives out what is left, padded.
  void finish();

 private:
  void encode_groups();

  const Sink& sink_;
  std::string bytes_;
};

}  // namespace bubblescope
