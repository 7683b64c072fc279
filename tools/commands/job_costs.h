// Fits costs to the measured steps of a job, for --costs-out and --try.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "sim/analysis/fit_costs.h"
#include "traces/files/trace_format.h"

namespace bubblescope::tools {

/// Costs of a job, and how its measured steps compare.
struct JobCosts {
  FittedCosts fitted;        ///< with the time outside the pipeline
  double measured_step = 0;  ///< the mean whole step of those that were fitted, nanoseconds
  std::vector<std::string> notes = {};  ///< whole sentences, those of the fit included
};

/// The measured steps of a job. Replicas are delayed as far as that is known.
struct StepsToFit {
  std::span<const ReplicatedStep> steps;
  std::vector<std::int64_t> numbers;  ///< the steps' own
  std::vector<traces::WholeStep> whole_steps;
  std::set<std::int64_t> known_starts;  ///< numbers of the steps whose delays are known
};

/// Fits the costs. Without whole steps, a step is its longest pipeline. Replicas begin as late as
/// they did in the mean.
JobCosts fit_job_costs(const StepsToFit& job, const FitOptions& options);

/// How far fitted costs may be from the measured step where they predict others, as a fraction.
inline constexpr double kMaxFitError = 0.1;

/// An error of fitted costs that their user is told of, as a fraction.
inline constexpr double kMaxUnstatedError = 0.02;

/// When with_prediction() adds its note.
enum class PredictionNote : std::uint8_t {
  kAlways,
  kIfOff,  ///< only for one pipeline whose prediction is off by more than kMaxUnstatedError
};

/// Adds a note on what the costs make of the measured schedule, whose median iteration is given:
/// "with these costs the measured schedule takes 4.17 s; its median iteration took 4.18 s (-0.4
/// %)".
JobCosts with_prediction(JobCosts costs, const ValidSchedule& measured, Nanos median,
                         PredictionNote note);

/// Returns the cost file, with what was measured and how.
std::string write_job_costs(const JobCosts& costs, const std::string& source, double replay_error);

}  // namespace bubblescope::tools
