// Computes what a cause saves, from replays of all steps with and without it.
#include "sim/analysis/cause_list.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "sim/analysis/mean.h"
#include "sim/analysis/pauses.h"
#include "sim/ir/quantile.h"

namespace bubblescope::inline sim {

namespace {

/// Pauses count as presumed if removing them makes the step shorter by this fraction.
constexpr double kPresumed = 0.005;
/// Workers are one cause if removing all saves over this many times the sum of removing each.
constexpr double kHidden = 1.1;

}  // namespace

CauseList::CauseList(const CoupledSteps& coupled)
    : coupled_(coupled), steps_(coupled.steps()), replayed_(replay({})), base_times_(replayed_) {}

std::vector<double> CauseList::replay(const std::vector<Counterfactual>& counterfactuals) const {
  return coupled_.replay(Waiting::kDropped, counterfactuals);
}

double CauseList::replayed() const { return mean_of(replayed_); }

std::vector<double> CauseList::replay_with(const Counterfactual& counterfactual) const {
  std::vector<Counterfactual> counterfactuals = base_;
  counterfactuals.push_back(counterfactual);
  return replay(counterfactuals);
}

double CauseList::time_saved(const Counterfactual& counterfactual) const {
  return mean_of(base_times_) - mean_of(replay_with(counterfactual));
}

bool CauseList::add(const Cause& cause, const Counterfactual& counterfactual) {
  if (!compare_with_base(cause, counterfactual)) return false;
  counterfactuals_.push_back(counterfactual);
  return true;
}

void CauseList::add_joined(std::span<const RemovableCause> singles, const RemovableCause& all) {
  counterfactuals_.push_back(all.counterfactual);
  const std::size_t before = causes_.size();
  Nanos singly = 0;
  for (const RemovableCause& single : singles)
    if (compare_with_base(single.cause, single.counterfactual)) singly += causes_.back().saves;
  if (singles.size() < 2 || !compare_with_base(all.cause, all.counterfactual)) return;
  const Cause joint = causes_.back();
  causes_.pop_back();
  if (static_cast<double>(joint.saves) <= kHidden * static_cast<double>(singly)) return;
  causes_.resize(before);
  causes_.push_back(joint);
}

bool CauseList::compare_with_base(const Cause& cause, const Counterfactual& counterfactual) {
  if (!add_compared(cause, base_times_, replay_with(counterfactual))) return false;
  causes_.back().presumed = removed_;
  return true;
}

bool CauseList::add_compared(Cause cause, const std::vector<double>& with,
                             const std::vector<double>& without) {
  cause.has_replicas = replicas() > 1;
  cause.all_steps = std::ssize(steps_);
  cause.saves = std::llround(mean_of(with) - mean_of(without));
  if (cause.saves <= 0) return false;
  cause.left = std::llround(mean_of(without));
  std::vector<double> saved;
  for (std::size_t at = 0; at < with.size(); ++at) saved.push_back(with[at] - without[at]);
  cause.saves_p5 = std::llround(quantile(saved, 5));
  cause.saves_p95 = std::llround(quantile(saved, 95));
  causes_.push_back(std::move(cause));
  return true;
}

void CauseList::take_as_base(CauseKind kind, const Counterfactual& counterfactual) {
  const double before = mean_of(base_times_);
  base_.push_back(counterfactual);
  base_times_ = replay(base_);
  // A slow worker may hide other causes without making the step longer itself; a pause does not.
  const bool matters =
      kind != CauseKind::kPause || before - mean_of(base_times_) >= kPresumed * mean_of(replayed_);
  if (matters && std::find(removed_.begin(), removed_.end(), kind) == removed_.end())
    removed_.push_back(kind);
}

bool CauseList::has(CauseKind kind) const {
  return std::any_of(causes_.begin(), causes_.end(),
                     [kind](const Cause& cause) { return cause.kind() == kind; });
}

Nanos CauseList::find_saved_together() const {
  return std::llround(mean_of(replay({with_gaps()})) - mean_of(replay(counterfactuals_)));
}

std::vector<Cause> CauseList::rank() && {
  std::stable_sort(causes_.begin(), causes_.end(),
                   [](const Cause& left, const Cause& right) { return left.saves > right.saves; });
  return std::move(causes_);
}

}  // namespace bubblescope::inline sim
