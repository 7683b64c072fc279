// What follows a product: made within it, or by a kernel of its own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace bubblescope {

enum class Epilogue : std::uint8_t {
  kFused,     ///< wherever the library has such a product
  kSeparate,  ///< by kernels of ours
};

/// A kind of product that the GELU, or its gradient, follows: rows x inner by inner x columns.
struct EpilogueUse {
  std::int32_t rows = 0;
  std::int32_t inner = 0;
  std::int32_t columns = 0;
  bool goes_back = false;  ///< what follows is the GELU's gradient
  bool is_fused = false;   ///< else the library has no such product

  bool operator==(const EpilogueUse&) const = default;
};

/// "GELU within 8 x 8 by 8 x 32; GELU's gradient after 8 x 8 by 8 x 32, for which cuBLASLt has no
/// epilogue"; empty for none.
std::string to_string(const std::vector<EpilogueUse>& uses);

/// `"epilogues":[{"epilogue":"gelu","rows":8,"inner":8,"columns":32,"fused":true},...]`.
std::string epilogues_json(const std::vector<EpilogueUse>& uses);

}  // namespace bubblescope
