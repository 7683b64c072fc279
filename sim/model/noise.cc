// Draws the random factors of every scenario.
#include "sim/model/noise.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "sim/ir/depend.h"
#include "sim/ir/error.h"
#include "sim/ir/range.h"
#include "sim/model/random.h"

namespace bubblescope::inline sim {

namespace {

constexpr std::size_t kQuantiles = 256;

/// The purpose of a draw. Different streams of one seed are independent.
enum class Stream : std::uint64_t { kJitter = 1, kRank, kLength, kSlowStep, kStep };

/// Turns the key of an op's jitter into that of its straggling.
constexpr std::uint64_t kStraggling = 0x5851f42d4c957f2du;

std::uint64_t key_of(std::uint64_t seed, Stream stream, std::uint64_t what) {
  return mix(mix(seed ^ static_cast<std::uint64_t>(stream) << 56) + what);
}

/// The seed of a replica's own draws; replica 0 has the seed itself.
std::uint64_t seed_of(const Noise& noise) {
  return noise.replica == 0 ? noise.seed : draw(noise.seed, noise.replica);
}

/// Identical for a full backward and an input gradient, because they produce the same value.
std::uint64_t identity_of(const Op& op) {
  const auto kind = is_compute(op.kind) ? static_cast<std::uint64_t>(value_kind_of(op.kind))
                                        : kValueKinds + static_cast<std::uint64_t>(op.kind);
  const auto where = static_cast<std::uint64_t>(op.stage) << 32 |
                     static_cast<std::uint64_t>(static_cast<std::uint32_t>(op.microbatch));
  return mix(where) + (kind << 16 | static_cast<std::uint64_t>(op.slice));
}

double normal_distribution(double z) { return 0.5 * std::erfc(-z / std::sqrt(2.0)); }

/// Returns the midpoints of equally likely parts of a normal distribution, scaled to variance 1.
std::vector<double> normal_quantiles() {
  std::vector<double> quantiles(kQuantiles);
  double squares = 0;
  for (std::size_t at = 0; at < kQuantiles / 2; ++at) {
    const double wanted = (static_cast<double>(at) + 0.5) / static_cast<double>(kQuantiles);
    double low = -4;
    double high = 0;
    for (int halving = 0; halving < 54; ++halving) {
      const double middle = (low + high) / 2;
      (normal_distribution(middle) < wanted ? low : high) = middle;
    }
    quantiles[at] = high;
    quantiles[kQuantiles - 1 - at] = -high;
    squares += 2 * high * high;
  }
  for (double& quantile : quantiles)
    quantile /= std::sqrt(squares / static_cast<double>(kQuantiles));
  return quantiles;
}

/// Drops the last digits, in which exp() may differ between machines.
double rounded(double factor) {
  constexpr double kParts = 1 << 30;
  return std::round(factor * kParts) / kParts;
}

/// Returns for n = 0, 1, 2, ... the chance that one of n scenarios straggles, 1 - (1 - p)^n, in
/// units of 2^-32.
std::vector<std::uint64_t> straggle_chances(double probability) {
  std::vector<std::uint64_t> within;
  double none = 1;
  for (std::size_t scenarios = 0; scenarios <= kBatchWidth; ++scenarios) {
    within.push_back(static_cast<std::uint64_t>(std::llround((1 - none) * 0x1p32)));
    none *= 1 - probability;
  }
  return within;
}

constexpr Batch kOnes{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

}  // namespace

FactorTable::FactorTable(Distribution distribution, double sigma) : distribution_(distribution) {
  if (sigma == 0) return;
  entries_ = normal_quantiles();
  double sum = 0;
  for (double& entry : entries_) {
    const double half = sigma * entry / std::sqrt(2.0);
    entry = distribution == Distribution::kLognormal ? std::exp(half) : 0.5 + half;
    sum += entry;
  }
  const double mean = sum / static_cast<double>(kQuantiles);
  for (double& entry : entries_)
    entry = rounded(distribution == Distribution::kLognormal ? entry / mean : entry);
}

double FactorTable::largest() const {
  if (entries_.empty()) return 1;
  const double largest_entry = entries_.back();
  return distribution_ == Distribution::kLognormal ? largest_entry * largest_entry
                                                   : largest_entry + largest_entry;
}

inline Batch FactorTable::factors(std::uint64_t key, std::size_t block) const {
  const bool is_lognormal = distribution_ == Distribution::kLognormal;
  const double* const entries = entries_.data();
  Batch factors;
  for (std::size_t at = 0; at < kBatchWidth; at += 4) {
    const std::uint64_t bits = draw(key, (block * kBatchWidth + at) / 4);
    for (std::size_t part = 0; part < 4; ++part) {
      const double first = entries[bits >> (16 * part) & 255];
      const double second = entries[bits >> (16 * part + 8) & 255];
      factors[at + part] = is_lognormal ? first * second : std::max(0.0, first + second);
    }
  }
  return factors;
}

std::vector<Nanos> apply_slow_ranks(const Program& program, std::vector<Nanos> durations,
                                    const std::vector<SlowRank>& slow_ranks) {
  std::vector<double> factors(static_cast<std::size_t>(program.ranks), 1);
  for (const SlowRank& slow : slow_ranks) {
    if (slow.rank >= program.ranks)
      throw Error("rank " + std::to_string(slow.rank) + " is slow, but ranks are 0.." +
                  std::to_string(program.ranks - 1) + "; correct `slow`");
    factors[static_cast<std::size_t>(slow.rank)] *= slow.factor;
  }
  for (InstructionId id = 0; id < program.size() && !slow_ranks.empty(); ++id) {
    const Instruction& instruction = program.instructions[id];
    const double factor = factors[static_cast<std::size_t>(instruction.rank)];
    if (factor != 1 && is_compute(instruction.op.kind))
      durations[id] =
          round_nanos(static_cast<double>(durations[id]) * factor, "an op of a slow rank");
  }
  expect_in_range(durations);
  return durations;
}

NoiseModel::NoiseModel(const Program& program, std::span<const Nanos> durations, const Noise& noise,
                       std::vector<Nanos> byte_times)
    : program_(program),
      durations_(durations),
      byte_times_(std::move(byte_times)),
      noise_(noise),
      op_table_(noise.distribution, noise.op_jitter),
      message_table_(noise.distribution, noise.message_jitter),
      rank_table_(noise.distribution, noise.rank_jitter),
      length_table_(noise.distribution, noise.sequence_length_jitter),
      step_table_(noise.distribution, noise.step_jitter),
      straggle_chances_(straggle_chances(noise.stragglers.probability)) {
  const double worst = op_table_.largest() * message_table_.largest() * rank_table_.largest() *
                       length_table_.largest() * step_table_.largest() *
                       std::max(1.0, noise.stragglers.factor);
  double sum = 0;
  for (const Nanos duration : durations) sum += static_cast<double>(duration);
  if (sum * worst > kMaxBatchTime / 2)
    throw Error("with this noise a step might take over 26 days; use less noise or fewer ops");
  has_jitter_alone_ =
      !rank_table_.has_spread() && !length_table_.has_spread() && !step_table_.has_spread() &&
      noise.stragglers.probability == 0 &&
      std::none_of(program.instructions.begin(), program.instructions.end(), is_arrival);
  keys_.reserve(program.instructions.size());
  for (const Instruction& instruction : program.instructions) {
    microbatches_ = std::max(microbatches_, instruction.op.microbatch + 1);
    keys_.push_back(key_of(seed_of(noise), Stream::kJitter, identity_of(instruction.op)));
  }
}

NoisyBatch::NoisyBatch(const NoiseModel& model, std::size_t block) : model_(model), block_(block) {
  const Noise& noise = model.noise_;
  const std::uint64_t seed = seed_of(noise);
  const bool slow_steps = noise.stragglers.whole_rank && noise.stragglers.probability > 0;
  Batch of_step = kOnes;
  if (model.step_table_.has_spread())
    of_step = model.step_table_.factors(key_of(noise.seed, Stream::kStep, 0), block);
  if (model.rank_table_.has_spread() || model.step_table_.has_spread() || slow_steps)
    for (std::int32_t rank = 0; rank < model.program_.ranks; ++rank) {
      const auto what = static_cast<std::uint64_t>(rank);
      Batch factors = kOnes;
      if (model.rank_table_.has_spread())
        factors = model.rank_table_.factors(key_of(seed, Stream::kRank, what), block);
      if (slow_steps) factors = apply_stragglers(factors, key_of(seed, Stream::kSlowStep, what));
      for (std::size_t at = 0; at < kBatchWidth; ++at) factors[at] *= of_step[at];
      of_rank_.push_back(factors);
    }
  if (!model.length_table_.has_spread()) return;
  for (std::int32_t microbatch = 0; microbatch < model.microbatches_; ++microbatch) {
    const auto what = static_cast<std::uint64_t>(microbatch);
    of_microbatch_.push_back(
        model.length_table_.factors(key_of(seed, Stream::kLength, what), block));
  }
}

/// Draws the distance to the next scenario that straggles, so that a batch without stragglers, the
/// usual case, needs one draw.
Batch NoisyBatch::apply_stragglers(Batch durations, std::uint64_t key) const {
  const std::vector<std::uint64_t>& within = model_.straggle_chances_;
  std::uint64_t number = block_ * kBatchWidth;
  for (std::size_t left = kBatchWidth; left > 0;) {
    const std::uint64_t bits = draw(key, number++) >> 32;
    if (bits >= within[left]) break;
    std::size_t distance = 1;
    while (bits >= within[distance]) ++distance;
    durations[kBatchWidth - left + distance - 1] *= model_.noise_.stragglers.factor;
    left -= distance;
  }
  return durations;
}

const Batch& NoisyBatch::length(InstructionId id) const {
  if (of_microbatch_.empty()) return kOnes;
  const Op& op = model_.program_.instructions[id].op;
  return of_microbatch_[static_cast<std::size_t>(op.microbatch)];
}

/// Whether apply_stragglers() would change anything; usually not.
inline bool NoisyBatch::has_straggler(std::uint64_t key) const {
  return draw(key, block_ * kBatchWidth) >> 32 < model_.straggle_chances_[kBatchWidth];
}

inline Batch NoisyBatch::jitter(InstructionId id, double alone) const {
  const bool compute = is_compute(model_.program_.instructions[id].op.kind);
  const FactorTable& table = compute ? model_.op_table_ : model_.message_table_;
  Batch durations = table.has_spread() ? table.factors(model_.keys_[id], block_) : kOnes;
  for (double& duration : durations) duration = to_whole_nanos(duration * alone);
  return durations;
}

/// Applies all factors in one loop, with 1 for missing ones, because storing intermediate batches
/// costs more than a multiplication. A compute op's time scales with its micro-batch's length; of a
/// message, only the bytes' part does.
Batch NoisyBatch::operator()(InstructionId id) const {
  const auto alone = static_cast<double>(model_.durations_[id]);
  if (alone == 0) return Batch{};
  if (model_.has_jitter_alone_) return jitter(id, alone);
  const Instruction& instruction = model_.program_.instructions[id];
  if (is_arrival(instruction)) {
    Batch fixed;
    fixed.fill(alone);
    return fixed;
  }
  const bool compute = is_compute(instruction.op.kind);
  const FactorTable& jitter = compute ? model_.op_table_ : model_.message_table_;
  const std::uint64_t key = model_.keys_[id];
  const Batch factors = jitter.has_spread() ? jitter.factors(key, block_) : kOnes;
  const bool by_rank = compute && !of_rank_.empty();
  const Batch& rank = by_rank ? of_rank_[static_cast<std::size_t>(instruction.rank)] : kOnes;
  const auto& byte_times = model_.byte_times_;
  const double bytes = byte_times.empty() ? 0 : static_cast<double>(byte_times[id]);
  const double scaled = compute ? alone : bytes;
  const double fixed = alone - scaled;
  const Batch& lengths = scaled > 0 ? length(id) : kOnes;
  Batch durations;
  for (std::size_t at = 0; at < kBatchWidth; ++at)
    durations[at] = (fixed + scaled * lengths[at]) * factors[at] * rank[at];
  const Stragglers& stragglers = model_.noise_.stragglers;
  if (compute && stragglers.probability > 0 && !stragglers.whole_rank &&
      has_straggler(key ^ kStraggling))
    durations = apply_stragglers(durations, key ^ kStraggling);
  for (double& duration : durations) duration = to_whole_nanos(duration);
  return durations;
}

}  // namespace bubblescope::inline sim
