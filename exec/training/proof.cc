// Comparing two trainings.
#include "exec/training/proof.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

namespace bubblescope {

namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

/// The largest difference relative to the largest entry; infinite for what is no number.
double difference(const Matrix& trained, const Matrix& reference) {
  if (trained.rows != reference.rows || trained.columns != reference.columns) return kInfinite;
  double largest = 0;
  double worst = 0;
  for (std::size_t at = 0; at < trained.values.size(); ++at) {
    const double apart = std::abs(double{trained.values[at]} - double{reference.values[at]});
    if (std::isnan(apart)) return kInfinite;
    worst = std::max(worst, apart);
    largest = std::max(largest, std::abs(double{reference.values[at]}));
  }
  return worst == 0 ? 0 : worst / std::max(largest, 1e-30);
}

void note(Proof& proof, double apart, const std::string& what) {
  if (apart <= proof.worst) return;
  proof.worst = apart;
  proof.where = what;
}

void compare_stage(Proof& proof, const TrainingResult& trained, const TrainingResult& reference,
                   std::size_t stage) {
  const Stage& expected = reference.stages[stage];
  for (std::size_t at = 0; at < expected.weights.size(); ++at) {
    const std::string what = " of " + expected.names[at] + ", stage " + std::to_string(stage);
    note(proof, difference(trained.gradients[stage][at], reference.gradients[stage][at]),
         "gradient" + what);
    note(proof, difference(trained.stages[stage].weights[at], expected.weights[at]),
         "weight" + what);
  }
}

}  // namespace

Proof prove(const TrainingResult& trained, const TrainingResult& reference, double tolerance) {
  Proof proof;
  if (trained.losses.size() != reference.losses.size() ||
      trained.stages.size() != reference.stages.size())
    return {false, false, kInfinite, "number of steps or stages"};
  for (std::size_t step = 0; step < reference.losses.size(); ++step) {
    const double apart = std::abs(trained.losses[step] - reference.losses[step]);
    note(proof, std::isnan(apart) ? kInfinite : apart / std::abs(reference.losses[step]),
         "loss of step " + std::to_string(step));
  }
  for (std::size_t stage = 0; stage < reference.stages.size(); ++stage)
    compare_stage(proof, trained, reference, stage);
  proof.exact = proof.worst == 0;
  proof.matches = proof.worst <= tolerance;
  return proof;
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
