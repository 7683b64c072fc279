// Noise: how durations differ from step to step.
//
// In scenario n an op takes  duration x jitter x rank x length x straggler  to the nearest
// nanosecond. Each factor is drawn by what it belongs to, not by its place in a schedule: the
// jitter by (kind, stage, micro-batch, slice), the rank's by the rank, the length by the
// micro-batch. So in scenario n of two schedules the same ops are slow, and a comparison shows the
// schedules, not the luck. A full backward has the jitter of its input gradient.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/ir/program.h"
#include "sim/ir/units.h"
#include "sim/model/batch.h"

namespace bubblescope {

/// What the factors of a Spread look like; both have mean 1.
enum class Distribution : std::uint8_t {
  kLognormal,  ///< exp(sigma z - sigma^2 / 2): never negative, with a long tail of slow ops
  kGaussian,   ///< 1 + sigma z, but not below 0
};

/// Now and then something takes far longer: garbage collection, a page fault, a retry.
struct Stragglers {
  double probability = 0;
  double factor = 1;
  bool whole_rank = false;  ///< drawn per rank and scenario, for all its ops; else per op
};

/// Sigmas are fractions: 0.05 is 5 %.
struct Noise {
  Distribution distribution = Distribution::kLognormal;
  double op_jitter = 0;       ///< of every compute op
  double message_jitter = 0;  ///< of every message; of its latency, where messages share links
  double rank_jitter = 0;     ///< of a rank: of all its ops in a scenario
  /// Of a micro-batch's length: all its ops scale with it, and the bytes of its messages and
  /// copies.
  double ragged = 0;
  Stragglers stragglers;
  std::uint64_t seed = 1;

  /// Whether any two scenarios can differ.
  bool is_random() const {
    return op_jitter > 0 || message_jitter > 0 || rank_jitter > 0 || ragged > 0 ||
           stragglers.probability > 0;
  }
};

/// Always slow, which is no noise: in every scenario, and in the step that a report shows.
struct SlowRank {
  std::int32_t rank = 0;
  double factor = 1;  ///< its ops take so many times as long
};

/// Durations with the ops of slow ranks stretched, to the nearest nanosecond.
/// Throws Error where one of them is none of the Program's.
std::vector<Nanos> slow_down(const Program& program, std::vector<Nanos> durations,
                             const std::vector<SlowRank>& slow_ranks);

/// Factors by quantile. A draw of 16 bits picks one of 256 quantiles of a normal distribution
/// twice; the sum of the two over the root of 2 is normal, and reaches to 4.08 sigma.
class FactorTable {
 public:
  FactorTable() = default;  ///< no spread: every factor is 1
  FactorTable(Distribution distribution, double sigma);

  bool has_spread() const { return !entries_.empty(); }
  double largest() const;

  /// Those of scenarios 16 x `block`, and so on; one draw of `key` serves four. With a spread only.
  Batch factors(std::uint64_t key, std::size_t block) const;

 private:
  Distribution distribution_ = Distribution::kLognormal;
  std::vector<double> entries_;  ///< 256
};

/// What of a Program's durations is noisy, and how. Refers to the Program and the durations.
class NoiseModel {
 public:
  /// `byte_times` is price_bytes()'s; empty: all 0. Throws Error where a step might get too long.
  NoiseModel(const Program& program, std::span<const Nanos> durations, const Noise& noise,
             std::vector<Nanos> byte_times = {});

 private:
  friend class NoisyBatch;

  const Program& program_;
  std::span<const Nanos> durations_;
  std::vector<Nanos> byte_times_;  ///< per instruction; or empty
  Noise noise_;
  std::vector<std::uint64_t> keys_;  ///< per instruction, from what it is
  std::int32_t microbatches_ = 0;
  FactorTable op_table_, message_table_, rank_table_, length_table_;
  std::vector<std::uint64_t> straggles_within_;  ///< [n]: of 2^32, that one of n scenarios does
};

/// The durations in 16 scenarios: 16 x block, and so on. Refers to the NoiseModel.
class NoisyBatch {
 public:
  NoisyBatch(const NoiseModel& model, std::size_t block);

  Batch operator()(InstructionId id) const;
  const Batch& length(InstructionId id) const;  ///< of its micro-batch, as a factor

 private:
  bool has_straggler(std::uint64_t key) const;
  Batch let_straggle(Batch durations, std::uint64_t key) const;

  const NoiseModel& model_;
  std::size_t block_;
  std::vector<Batch> of_rank_, of_microbatch_;  ///< factors; empty where all are 1
};

}  // namespace bubblescope
