// Refuses a timeline whose times would be dropped.
#include "tools/inputs/named_costs.h"

#include <fmt/format.h>

#include <vector>

#include "sim/ir/error.h"
#include "sim/ir/op_kinds.h"
#include "tools/flags/words.h"

namespace bubblescope::tools {

namespace {

/// Names the flags that the schedule's forwards and backwards need and that are not given.
std::string find_missing_times(const Schedule& schedule, const CostOptions& cost) {
  const auto is_given = [&](const char* flag) { return cost.given.contains(flag); };
  std::vector<std::string> missing;
  if (has_kind(schedule, OpKind::kForward) && !is_given("--f")) missing.emplace_back("--f");
  const bool splits =
      has_kind(schedule, OpKind::kInputGrad) || has_kind(schedule, OpKind::kWeightGrad);
  const bool any_half = is_given("--i") || is_given("--w");
  if (is_given("--b")) {
    // Halves that are not given follow from it.
  } else if (splits || any_half) {
    for (const char* flag : {"--i", "--w"})
      if (!is_given(flag)) missing.emplace_back(flag);
  } else if (has_kind(schedule, OpKind::kBackward)) {
    missing.emplace_back("--b");
  }
  if (missing.size() < 2) return join(missing, "");
  const std::string last = missing.back();
  missing.pop_back();
  return join(missing, ", ") + " and " + last;
}

}  // namespace

void expect_named_costs(const std::string& timeline_path, const Schedule& schedule,
                        const PredictOptions& options) {
  if (!options.cost.file.empty() || options.model.given()) return;
  const std::string missing = find_missing_times(schedule, options.cost);
  if (missing.empty()) return;
  throw Error(fmt::format(
      "{0} is a timeline: its ops have times of their own, which the defaults of {1} would replace "
      "here; 'bubblescope analyze {0}' reports on them as they are, and for its order with other "
      "times add {1}, or --costs FILE or --model",
      timeline_path, missing));
}

}  // namespace bubblescope::tools
