// A softmax whose scores come a few columns at a time.
#pragma once

#include "exec/gpu/device/fragment_sums.cuh"

namespace bubblescope::exec {

/// fmaxf is one instruction, Max is two: it returns the second of its numbers if one is NaN.
struct Larger {
  __device__ float operator()(float left, float right) const { return fmaxf(left, right); }
};

/// The softmax of a lane's rows so far. Powers are of two, of scores times scale * log2(e),
/// relative to a score that may be kSlack powers below the largest, so sums are seldom scaled anew.
template <int kPieces, int kSlack>
struct RunningSoftmax {
  float shift[kPieces][2];  ///< the score to which powers are relative, times scale * log2(e)
  float sum[kPieces][2];    ///< over this lane's columns

  __device__ RunningSoftmax() {
    BUBBLESCOPE_UNROLL
    for (int row = 0; row < 2 * kPieces; ++row)
      shift[row / 2][row % 2] = -INFINITY, sum[row / 2][row % 2] = 0;
  }

  /// Replaces scores by weights, and scales what was summed up before accordingly.
  template <int kStep, int kWidth>
  __device__ void add(FragmentSums<kPieces, kStep>& scores, FragmentSums<kPieces, kWidth>& mix,
                      float scale) {
    float shrink[kPieces][2];
    bool all_keep = true;
    BUBBLESCOPE_UNROLL
    for (int row = 0; row < 2 * kPieces; ++row) {
      float& factor = shrink[row / 2][row % 2];
      factor = move_shift(scores.of[row / 2], shift[row / 2][row % 2], row % 2, scale);
      all_keep = all_keep && factor == 1;
      sum[row / 2][row % 2] =
          sum[row / 2][row % 2] * factor +
          weigh_row(scores.of[row / 2], shift[row / 2][row % 2], row % 2, scale);
    }
    if (all_keep) return;
    BUBBLESCOPE_UNROLL
    for (int piece = 0; piece < kPieces; ++piece) BUBBLESCOPE_UNROLL
    for (auto& part : mix.of[piece]) BUBBLESCOPE_UNROLL
    for (int each = 0; each < 4; ++each) part[each] *= shrink[piece][each / 2];
  }

 private:
  /// Returns the factor of what was summed up before.
  template <int kColumns>
  __device__ static float move_shift(const float (&scores)[kColumns][4], float& shift, int half,
                                     float scale) {
    float highest = -INFINITY;
    BUBBLESCOPE_UNROLL
    for (auto& part : scores) highest = fmaxf(highest, fmaxf(part[2 * half], part[2 * half + 1]));
    highest = reduce_row(highest, Larger()) * scale;
    if (!(highest > shift + kSlack)) return 1;  // nor if both are minus infinity
    const float factor = power_of_two(shift - highest);
    shift = highest;
    return factor;
  }

  /// Returns the sum of this lane's weights.
  template <int kColumns>
  __device__ static float weigh_row(float (&scores)[kColumns][4], float shift, int half,
                                    float scale) {
    float sum = 0;
    BUBBLESCOPE_UNROLL
    for (auto& part : scores) BUBBLESCOPE_UNROLL
    for (int each = 2 * half; each < 2 * half + 2; ++each) {
      part[each] = power_of_two(part[each] * scale - shift);
      sum += part[each];
    }
    return sum;
  }
};

}  // namespace bubblescope::exec
