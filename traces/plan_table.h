// What `plan` found, and how it is written.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/analysis/plan.h"
#include "sim/model/known_errors.h"

namespace bubblescope {

/// The best plan's schedule stays the best, in one configuration or another, until a cost flag has
/// this value; from there on another schedule is.
struct BreakEven {
  std::string parameter;  ///< "p2p", "w", "i", "total-w", ...: the flag that is varied
  Nanos now = 0;
  Nanos at = 0;  ///< the nearest value at which `rival` is ahead
  Configuration rival;
};

/// Why configurations of one schedule are no plans.
struct Refusal {
  std::string schedule;
  std::string reason;  ///< of the one that lacks least memory, or of the first of them
  std::int64_t configurations = 0;
  std::optional<Configuration> closest;  ///< the one that lacks least memory
};

struct PlanTable {
  std::vector<Plan> plans;  ///< that fit, ranked
  /// Of a model, how far published runs nearest to it were off; nothing where none were compared.
  std::optional<KnownErrors> errors;
  bool modelled = false;
  bool any_framework = true;  ///< the plans are not restricted to one framework's
  std::vector<Refusal> refusals;
  std::vector<BreakEven> break_evens;
  std::vector<std::string> stays_best;  ///< parameters that were varied and change nothing
  std::int64_t configurations = 0;      ///< that were tried
  std::int64_t covered = 0;             ///< not tried, as one that differs in the split is no worse
};

struct PlanTextOptions {
  int width = 80;
  bool colour = false;
  bool fit = false;       ///< no line is wider: what matters least of a table is left out
  std::size_t rows = 20;  ///< of the ranked table
};

/// For people:
///
/// 12 plans of 14 configurations that were tried, best first
/// #  schedule  pp  vpp   m   step  per sample  bubble  peak
/// 1  zb-h2      4    1  16  52 ms     3.25 ms   7.7 %     7  *
///
/// `~` before a number marks a tie with the first, closer to it than predictions can tell; `*`
/// marks the Pareto front: nothing else is as fast in as little memory. Below it stand the
/// break-even points, why each other schedule's best plan loses, and what was refused.
std::string write_plan_text(const PlanTable& table, const PlanTextOptions& options);

/// {"format":"bubblescope-plan/1","plans":[{"schedule":"zb-h2","pp":4,...},...],"pareto":[0,3],...}
std::string write_plan_json(const PlanTable& table);

/// One line per plan, best first, with the json's names.
std::string write_plan_csv(const PlanTable& table);

/// The best plan over two axes that are free: pipeline sizes and micro-batch counts, or for a model
/// tensor ranks. A cell holds its schedule's letter and how much slower it is than the best plan of
/// all, or its MFU; colours say the former. Empty where there is only one shape.
///
/// pp \ m         8        16        32
/// 4        a +21.3%   a +8.0%   b +0.0%
/// a zb-h2  b zb-v
std::string write_heat_map_text(const std::vector<Plan>& ranked, const PlanTextOptions& options);
std::string write_heat_map_svg(const std::vector<Plan>& ranked);

}  // namespace bubblescope
