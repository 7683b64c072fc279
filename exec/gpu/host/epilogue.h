// GELU epilogues of GEMMs: fused into the GEMM, or run as a separate kernel.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace bubblescope::exec {

enum class Epilogue : std::uint8_t {
  kFused,     ///< fused where cuBLASLt supports it
  kSeparate,  ///< always a separate kernel
};

/// The shape of a GEMM that is followed by the GELU or its gradient, and whether they were fused.
struct EpilogueUse {
  std::int32_t rows = 0;
  std::int32_t k = 0;
  std::int32_t columns = 0;
  bool is_gradient = false;  ///< followed by the gradient of the GELU
  bool is_fused = false;     ///< false: cuBLASLt has no such epilogue

  bool operator==(const EpilogueUse&) const = default;
};

/// "GELU within 8 x 8 by 8 x 32; GELU's gradient after 8 x 8 by 8 x 32, which cuBLASLt cannot
/// fuse"; empty without uses.
std::string to_string(const std::vector<EpilogueUse>& uses);

}  // namespace bubblescope::exec
