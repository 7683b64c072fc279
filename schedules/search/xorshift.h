// Random numbers that are the same on every machine.
#pragma once

#include <cstddef>
#include <cstdint>

namespace bubblescope::schedules {

/// An xorshift64 generator.
class XorShift64 {
 public:
  /// Seed 1 gives the constant itself. No odd multiple of it is 0, which would be a fixed point.
  explicit XorShift64(std::uint64_t seed) : state_((2 * seed - 1) * 0x9e3779b97f4a7c15u) {}

  std::size_t below(std::size_t bound) {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return static_cast<std::size_t>(state_ % bound);
  }

 private:
  std::uint64_t state_;
};

}  // namespace bubblescope::schedules
