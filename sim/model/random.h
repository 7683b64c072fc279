// Random numbers as functions: a draw depends only on its key and its number, so it is the same in
// any order, on any number of threads and on any machine.
#pragma once

#include <cstdint>

#include "sim/ir/mix.h"

namespace bubblescope::inline sim {

/// Returns element `number` of the SplitMix64 sequence that starts at `key`.
constexpr std::uint64_t draw(std::uint64_t key, std::uint64_t number) {
  return mix(key + (number + 1) * 0x9e3779b97f4a7c15u);
}

}  // namespace bubblescope::inline sim
