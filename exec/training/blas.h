// OpenBLAS, loaded at the first GEMM: a program that only simulates does not pay for loading it,
// and runs where it is not installed.
#pragma once

#include <string>

namespace bubblescope::exec {

// The values of CBLAS's enumerations.
inline constexpr int kRowMajor = 101;
inline constexpr int kNotTransposed = 111;
inline constexpr int kTransposed = 112;

/// cblas_sgemm: target = alpha * left * right + beta * target.
using GemmFunction = void (*)(int layout, int left_order, int right_order, int rows, int columns,
                              int k, float alpha, const float* left, int left_stride,
                              const float* right, int right_stride, float beta, float* target,
                              int target_stride);

struct Blas {
  std::string name = "plain loops";
  GemmFunction multiply = nullptr;  ///< null: plain loops are used
};

/// Loads it once, with one thread per caller. Safe to call from several threads.
const Blas& load_blas();

}  // namespace bubblescope::exec
