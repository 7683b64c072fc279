// Comparing two trainings.
#include "exec/training/proof.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <utility>
#include <vector>

namespace bubblescope {

namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

/// Between one matrix or several, and what they should be.
struct Difference {
  double largest = 0;  ///< of any entry
  double entry = 0;    ///< the largest that should be
  double squares = 0;  ///< of all differences
  double all = 0;      ///< of all that should be

  double of_entries() const { return largest == 0 ? 0 : largest / std::max(entry, 1e-30); }
  double together() const { return squares == 0 ? 0 : std::sqrt(squares / std::max(all, 1e-60)); }
};

/// Infinite for what is no number.
Difference difference(const Matrix& trained, const Matrix& reference) {
  if (trained.rows != reference.rows || trained.columns != reference.columns)
    return {kInfinite, 0, kInfinite, 0};
  Difference found;
  for (std::size_t at = 0; at < trained.values.size(); ++at) {
    const double wanted = reference.values[at];
    const double apart = std::abs(double{trained.values[at]} - wanted);
    if (std::isnan(apart)) return {kInfinite, 0, kInfinite, 0};
    found.largest = std::max(found.largest, apart);
    found.entry = std::max(found.entry, std::abs(wanted));
    found.squares += apart * apart;
    found.all += wanted * wanted;
  }
  return found;
}

/// Collects differences; the one that is closest to its tolerance, or farthest beyond, is kept.
class Judge {
 public:
  explicit Judge(const ProofTolerance& tolerance) : tolerance_(tolerance) {}

  void note(double apart, double tolerance, const std::string& what) {
    if (apart / tolerance <= worst_share_) return;
    worst_share_ = apart / tolerance;
    proof_.worst = apart;
    proof_.where = what;
  }

  /// Matrices of one kind, "gradient" or "weight", of a stage.
  void compare(const std::vector<Matrix>& trained, const std::vector<Matrix>& reference,
               const Stage& stage, const std::string& kind, std::size_t number) {
    Difference sum;
    const std::string where = ", stage " + std::to_string(number);
    for (std::size_t at = 0; at < reference.size(); ++at) {
      const Difference one = difference(trained[at], reference[at]);
      note(one.of_entries(), tolerance_.entry, kind + " of " + stage.names[at] + where);
      sum.squares += one.squares;
      sum.all += one.all;
    }
    note(sum.together(), tolerance_.together, kind + "s" + where);
  }

  Proof judge() && {
    proof_.exact = proof_.worst == 0;
    proof_.matches = worst_share_ <= 1;
    return std::move(proof_);
  }

 private:
  ProofTolerance tolerance_;
  double worst_share_ = 0;  ///< of its tolerance
  Proof proof_;
};

ProofTolerance tolerance_of(Precision precision) {
  return precision == Precision::kBfloat16 ? kBfloat16Tolerance : kFloat32Tolerance;
}

}  // namespace

Proof prove(const TrainingResult& trained, const TrainingResult& reference) {
  if (trained.losses.size() != reference.losses.size() ||
      trained.stages.size() != reference.stages.size())
    return {false, false, kInfinite, "number of steps or stages"};
  const ProofTolerance tolerance = tolerance_of(reference.stages.front().shape.precision);
  Judge judge(tolerance);
  for (std::size_t step = 0; step < reference.losses.size(); ++step) {
    const double apart = std::abs(trained.losses[step] - reference.losses[step]);
    judge.note(std::isnan(apart) ? kInfinite : apart / std::abs(reference.losses[step]),
               tolerance.together, "loss of step " + std::to_string(step));
  }
  for (std::size_t stage = 0; stage < reference.stages.size(); ++stage) {
    const Stage& expected = reference.stages[stage];
    judge.compare(trained.gradients[stage], reference.gradients[stage], expected, "gradient",
                  stage);
    judge.compare(trained.stages[stage].weights, expected.weights, expected, "weight", stage);
  }
  return std::move(judge).judge();
}

std::string to_string(const Proof& proof) {
  if (proof.exact) return "losses, gradients and weights equal the serial reference, bit for bit";
  char worst[32];
  std::snprintf(worst, sizeof worst, "%.1e", proof.worst);
  const std::string largest = std::string(worst) + " (" + proof.where + ")";
  if (proof.matches)
    return "losses, gradients and weights equal the serial reference; largest relative "
           "difference " +
           largest;
  return "the training is WRONG: it differs from the serial reference by " + largest;
}

}  // namespace bubblescope
