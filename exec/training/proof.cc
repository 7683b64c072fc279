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
    if (!std::isfinite(apart)) return {kInfinite, 0, kInfinite, 0};
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
    const double share = std::isnan(apart) ? kInfinite : apart / tolerance;
    if (share <= worst_share_) return;
    worst_share_ = share;
    proof_.worst = apart;
    proof_.where = what;
  }

  /// What a stage of the trained model has of each matrix, and what it should have.
  struct Matrices {
    const std::vector<Matrix>& trained;
    const std::vector<Matrix>& reference;
  };

  void compare_gradients(const Matrices& gradients, const Stage& stage, const std::string& where) {
    const Difference all = compare_entries(gradients, "gradient", stage, where);
    note(all.together(), tolerance_.together, "gradients" + where);
  }

  void compare_weights(const Matrices& weights, const Stage& initial, const std::string& where) {
    Difference all = compare_entries(weights, "weight", initial, where);
    all.all = 0;
    for (std::size_t at = 0; at < weights.reference.size(); ++at)
      all.all += difference(weights.reference[at], initial.weights[at]).squares;
    note(all.together(), tolerance_.change, "what updates changed" + where);
  }

  Proof judge() && {
    proof_.exact = proof_.worst == 0;
    proof_.matches = worst_share_ <= 1;
    return std::move(proof_);
  }

 private:
  Difference compare_entries(const Matrices& matrices, const std::string& kind, const Stage& stage,
                             const std::string& where) {
    Difference sum;
    for (std::size_t at = 0; at < matrices.reference.size(); ++at) {
      const Difference one = difference(matrices.trained[at], matrices.reference[at]);
      note(one.of_entries(), tolerance_.entry, kind + " of " + stage.names[at] + where);
      sum.squares += one.squares;
      sum.all += one.all;
    }
    return sum;
  }

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
      trained.stages.size() != reference.stages.size() ||
      reference.initial.size() != reference.stages.size())
    return {false, false, kInfinite, "number of steps or stages"};
  const ProofTolerance tolerance = tolerance_of(reference.stages.front().shape.precision);
  Judge judge(tolerance);
  for (std::size_t step = 0; step < reference.losses.size(); ++step) {
    const double apart = std::abs(trained.losses[step] - reference.losses[step]);
    judge.note(std::isnan(apart) ? kInfinite : apart / std::abs(reference.losses[step]),
               tolerance.together, "loss of step " + std::to_string(step));
  }
  for (std::size_t stage = 0; stage < reference.stages.size(); ++stage) {
    const std::string where = ", stage " + std::to_string(stage);
    const Stage& expected = reference.stages[stage];
    judge.compare_gradients({trained.gradients[stage], reference.gradients[stage]}, expected,
                            where);
    judge.compare_weights({trained.stages[stage].weights, expected.weights},
                          reference.initial[stage], where);
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
