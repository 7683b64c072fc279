// Noise: how durations differ from step to step.
// In scenario n an op takes  duration x jitter x rank x length x step x straggler  in nanoseconds.
// Factors are keyed by identity, not by position in a schedule: the jitter by (kind, stage,
// micro-batch, slice; a B's is that of its I), the rank's by the rank, the length by the
// micro-batch. So the same ops are slow in scenario n of two schedules, and a comparison is not
// decided by luck. Replicas share only the step's factor.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/ir/program.h"
#include "sim/ir/units.h"
#include "sim/model/batch.h"

namespace bubblescope::inline sim {

/// Both have mean 1.
enum class Distribution : std::uint8_t {
  kLognormal,  ///< exp(sigma z - sigma^2 / 2): never negative, with a long tail of slow ops
  kGaussian,   ///< 1 + sigma z, but not below 0
};

/// Rare events: garbage collection, a page fault, a retry.
struct Stragglers {
  double probability = 0;
  double factor = 1;
  bool whole_rank = false;  ///< drawn per rank and scenario, for all its ops; else per op
};

/// Sigmas are fractions: 0.05 is 5 %.
struct Noise {
  Distribution distribution = Distribution::kLognormal;
  double op_jitter = 0;               ///< per compute op
  double message_jitter = 0;          ///< per message; per latency if messages share links
  double rank_jitter = 0;             ///< per rank and scenario, for all its ops
  double sequence_length_jitter = 0;  ///< per micro-batch, for all its ops and the bytes it moves
  double step_jitter = 0;  ///< per scenario, for all compute ops of all ranks and replicas
  Stragglers stragglers;
  std::uint64_t seed = 1;
  std::uint64_t replica = 0;  ///< which is drawn

  /// Whether any two scenarios can differ.
  bool is_random() const {
    return op_jitter + message_jitter + rank_jitter + sequence_length_jitter + step_jitter > 0 ||
           stragglers.probability > 0;
  }
};

/// A rank that is slow in every scenario and also in the step that a report shows.
struct SlowRank {
  std::int32_t rank = 0;
  double factor = 1;  ///< its ops take `factor` times as long
};

/// Multiplies the durations of slow ranks' ops. Throws Error if the Program has no such rank.
std::vector<Nanos> apply_slow_ranks(const Program& program, std::vector<Nanos> durations,
                                    const std::vector<SlowRank>& slow_ranks);

/// Factors by quantile. A 16-bit draw picks one of 256 quantiles of a normal distribution twice;
/// the sum over the square root of 2 is normal, up to 4.08 sigma.
class FactorTable {
 public:
  FactorTable() = default;  ///< no spread: every factor is 1
  FactorTable(Distribution distribution, double sigma);

  bool has_spread() const { return !entries_.empty(); }
  double largest() const;

  /// The factors of scenarios 16 x `block` and so on; one draw of `key` serves four. Needs a
  /// spread.
  Batch factors(std::uint64_t key, std::size_t block) const;

 private:
  Distribution distribution_ = Distribution::kLognormal;
  std::vector<double> entries_;  ///< 256 entries
};

/// Draws the noisy durations of a Program. Refers to the Program and the durations.
class NoiseModel {
 public:
  /// `byte_times` is price_bytes(); empty: all 0. Throws Error if a step could get too long.
  NoiseModel(const Program& program, std::span<const Nanos> durations, const Noise& noise,
             std::vector<Nanos> byte_times = {});

 private:
  friend class NoisyBatch;

  const Program& program_;
  std::span<const Nanos> durations_;
  std::vector<Nanos> byte_times_;    ///< [instruction]; or empty
  std::vector<std::uint64_t> keys_;  ///< [instruction], from its identity
  Noise noise_;
  std::int32_t microbatches_ = 0;
  bool has_jitter_alone_ = false;  ///< every factor is an op's or a message's own
  FactorTable op_table_, message_table_, rank_table_, length_table_, step_table_;
  /// [n]: the chance that one of n scenarios straggles, of 2^32.
  std::vector<std::uint64_t> straggle_chances_;
};

/// The durations in scenarios 16 x block and so on. Refers to the NoiseModel.
class NoisyBatch {
 public:
  NoisyBatch(const NoiseModel& model, std::size_t block);

  Batch operator()(InstructionId id) const;
  const Batch& length(InstructionId id) const;  ///< of its micro-batch, as a factor

 private:
  Batch jitter(InstructionId id, double alone) const;
  bool has_straggler(std::uint64_t key) const;
  Batch apply_stragglers(Batch durations, std::uint64_t key) const;

  const NoiseModel& model_;
  std::size_t block_;
  std::vector<Batch> of_rank_, of_microbatch_;  ///< factors; empty where all are 1
};

}  // namespace bubblescope::inline sim
