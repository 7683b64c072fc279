// A count and its noun in messages: "1 rank", "4 ranks".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace bubblescope::inline sim {

/// Returns a text such as "1 rank", "4 ranks", "2 micro-batches" or "3 entries".
std::string counted(std::int64_t count, std::string_view noun);

}  // namespace bubblescope::inline sim
