// Compares two trainings.
#include "exec/training/verification.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <utility>
#include <vector>

namespace bubblescope::exec {

namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

/// The difference between matrices and their reference.
struct Difference {
  double largest = 0;  ///< largest difference of an entry
  double entry = 0;    ///< largest entry of the reference
  double squares = 0;  ///< sum of squared differences
  double all = 0;      ///< sum of squares of the reference

  double of_entries() const { return largest == 0 ? 0 : largest / std::max(entry, 1e-30); }
  double rms() const { return squares == 0 ? 0 : std::sqrt(squares / std::max(all, 1e-60)); }
};

/// The difference is infinite if an entry is NaN.
Difference compare_matrices(const Matrix& trained, const Matrix& reference) {
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

/// Collects differences, and keeps the one that is largest relative to its tolerance.
class ToleranceCheck {
 public:
  explicit ToleranceCheck(const VerificationTolerance& tolerance) : tolerance_(tolerance) {}

  void note(double apart, double tolerance, const std::string& what) {
    const double share = std::isnan(apart) ? kInfinite : apart / tolerance;
    if (share <= worst_ratio_) return;
    worst_ratio_ = share;
    result_.worst = apart;
    result_.where = what;
  }

  /// The trained and the reference matrices of one stage, side by side.
  struct Matrices {
    const std::vector<Matrix>& trained;
    const std::vector<Matrix>& reference;
  };

  void compare_gradients(const Matrices& gradients, const Stage& stage, const std::string& where) {
    const Difference all = compare_entries(gradients, "gradient", stage, where);
    note(all.rms(), tolerance_.rms, "gradients" + where);
  }

  void compare_weights(const Matrices& weights, const Stage& initial, const std::string& where) {
    Difference all = compare_entries(weights, "weight", initial, where);
    all.all = 0;
    for (std::size_t at = 0; at < weights.reference.size(); ++at)
      all.all += compare_matrices(weights.reference[at], initial.weights[at]).squares;
    note(all.rms(), tolerance_.change, "total weight change" + where);
  }

  Verification check() && {
    result_.exact = result_.worst == 0;
    result_.share = worst_ratio_;
    result_.matches = worst_ratio_ <= 1;
    return std::move(result_);
  }

 private:
  Difference compare_entries(const Matrices& matrices, const std::string& kind, const Stage& stage,
                             const std::string& where) {
    Difference sum;
    for (std::size_t at = 0; at < matrices.reference.size(); ++at) {
      const Difference one = compare_matrices(matrices.trained[at], matrices.reference[at]);
      note(one.of_entries(), tolerance_.entry, kind + " of " + stage.names[at] + where);
      sum.squares += one.squares;
      sum.all += one.all;
    }
    return sum;
  }

  VerificationTolerance tolerance_;
  double worst_ratio_ = 0;  ///< relative to its tolerance
  Verification result_;
};

/// Roundings occur in every op, and not in the first weights alone.
constexpr double kRoundings = 10;
/// A lost micro-batch exceeds tolerances by more, so differences above this cannot be told from
/// one.
constexpr double kMaxShare = 100;

bool is_float32(const TrainingResult& reference) {
  return reference.stages.front().shape.precision == Precision::kFloat32;
}

VerificationTolerance tolerance_of(const TrainingResult& reference) {
  if (is_float32(reference)) return kFloat32Tolerance;
  return kBfloat16Tolerance.after(reference.losses.size());
}

}  // namespace

VerificationTolerance VerificationTolerance::after(std::size_t steps) const {
  const double growth = std::sqrt(static_cast<double>(std::max<std::size_t>(steps, 1)));
  return {entry * growth, rms * growth, change};
}

Verification verify(const TrainingResult& trained, const TrainingResult& reference) {
  if (trained.losses.size() != reference.losses.size() ||
      trained.stages.size() != reference.stages.size() ||
      reference.initial.size() != reference.stages.size())
    return {false, false, kInfinite, kInfinite, "number of steps or stages"};
  const VerificationTolerance tolerance = tolerance_of(reference);
  ToleranceCheck check(tolerance);
  for (std::size_t step = 0; step < reference.losses.size(); ++step) {
    const double apart = std::abs(trained.losses[step] - reference.losses[step]);
    check.note(std::isnan(apart) ? kInfinite : apart / std::abs(reference.losses[step]),
               tolerance.rms, "loss of step " + std::to_string(step));
  }
  for (std::size_t stage = 0; stage < reference.stages.size(); ++stage) {
    const std::string where = ", stage " + std::to_string(stage);
    const Stage& expected = reference.stages[stage];
    check.compare_gradients({trained.gradients[stage], reference.gradients[stage]}, expected,
                            where);
    check.compare_weights({trained.stages[stage].weights, expected.weights},
                          reference.initial[stage], where);
  }
  return std::move(check).check();
}

Verification verify(const TrainingResult& trained, const TrainingResult& reference,
                    const std::function<TrainingResult()>& train_disturbed) {
  Verification found = verify(trained, reference);
  if (found.matches || !is_float32(reference) || !std::isfinite(found.worst)) return found;
  const Verification disturbed = verify(train_disturbed(), reference);
  found.rounding = disturbed.worst;
  found.is_explained = found.share <= kRoundings * disturbed.share;
  found.matches = found.is_explained && found.share <= kMaxShare;
  return found;
}

std::string to_string(const Verification& verification) {
  if (verification.exact)
    return "losses, gradients and weights equal the serial reference, bit for bit";
  char worst[32];
  std::snprintf(worst, sizeof worst, "%.1e", verification.worst);
  std::string largest = std::string(worst) + " (" + verification.where + ")";
  if (verification.rounding > 0) {
    std::snprintf(worst, sizeof worst, "%.1e", verification.rounding);
    largest +=
        std::string("; these steps make ") + worst + " of first weights that are one rounding off";
  }
  if (verification.matches)
    return "losses, gradients and weights equal the serial reference; largest relative "
           "difference " +
           largest;
  if (verification.is_explained)
    return "the training cannot be verified after so many steps, which amplify roundings as much "
           "as a fault; use fewer: it differs from the serial reference by " +
           largest;
  return "the training is WRONG: it differs from the serial reference by " + largest;
}

}  // namespace bubblescope::exec
