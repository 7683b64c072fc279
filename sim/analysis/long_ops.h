// Single ops that take far longer than usual, and whose they are.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/analysis/fit_noise.h"
#include "sim/analysis/op_samples.h"

namespace bubblescope::inline sim {

struct LongOps {
  std::vector<bool> is_long;     ///< per sample
  std::int64_t count = 0;        ///< how many
  std::int64_t steps = 0;        ///< the steps in which that worker has any
  double factor = 1;             ///< how many times as long they take, weighted by the usual time
  std::optional<Worker> worker;  ///< whose they are, if nearly all are of one
};

/// Long ops that are scattered as pauses are, but too many for the usual times to be sure, so that
/// they are no cause of their own.
struct ManyLongOps {
  double fraction = 0;  ///< of all ops
  double factor = 1;    ///< how many times as long they take
};

/// `excess` is FittedNoise's, per sample.
LongOps describe_long_ops(const std::vector<OpSample>& samples, std::vector<bool> are_long,
                          const std::vector<double>& excess);

/// Whether long ops of several workers are scattered, as interruptions are: ones of the host strike
/// any op. Where a worker is slow in whole steps, where the same ops are long in every step, and
/// where the forward and the backward of a micro-batch are long together, they have more work.
bool are_scattered(const std::vector<OpSample>& samples, const std::vector<bool>& are_long);

}  // namespace bubblescope::inline sim
