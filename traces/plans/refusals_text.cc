// Groups the refusals of a plan by their reasons.
#include "traces/plans/refusals_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/ir/counted.h"
#include "sim/ir/send_budget.h"
#include "traces/text/wording.h"

namespace bubblescope::traces {

namespace {

/// Returns the part of a configuration that differs from the defaults: "pp 8 tp 4 dp 2 m 32 mbs 1
/// full".
std::string describe_differences(const Configuration& which) {
  std::string text = fmt::format("pp {}", which.shape.ranks);
  const auto add = [&](const char* what, std::int32_t value) {
    if (value > 1) text += fmt::format(" {} {}", what, value);
  };
  add("vpp", which.shape.chunks);
  add("slices", which.shape.slices);
  add("group", which.shape.group_size.value_or(1));
  add("tp", which.tensor);
  add("cp", which.context);
  add("ep", which.expert);
  if (which.expert_tensor != which.tensor) text += fmt::format(" etp {}", which.expert_tensor);
  add("dp", which.data);
  text += fmt::format(" m {}", which.shape.microbatches);
  add("mbs", which.micro_batch_size);
  if (which.recompute != Recompute::kNone) text += " " + recompute_text(which);
  if (which.send_budget > 0) text += " budget " + budget_text(which.send_budget);
  if (which.lookahead) text += " ahead " + lookahead_text(which);
  if (which.split != LayerSplit::kBalanced)
    text += fmt::format(" {}", name_of(kLayerSplits, which.split));
  return text;
}

/// Schedules that are refused for the same reason.
struct RefusalGroup {
  std::vector<std::string> schedules;
  Refusal refused;  ///< of all of them
};

/// Whether the reasons are the same: those about memory are of one configuration each.
bool are_alike(const Refusal& left, const Refusal& right) {
  return !left.closest && !right.closest && left.reason == right.reason &&
         (left.configurations == 0) == (right.configurations == 0);
}

std::vector<RefusalGroup> group_by_reason(const std::vector<Refusal>& refusals) {
  std::vector<RefusalGroup> groups;
  for (const Refusal& refused : refusals) {
    const auto known = std::find_if(groups.begin(), groups.end(), [&](const RefusalGroup& group) {
      return are_alike(group.refused, refused);
    });
    if (known == groups.end()) {
      groups.push_back({{refused.schedule}, refused});
      continue;
    }
    known->schedules.push_back(refused.schedule);
    known->refused.configurations += refused.configurations;
  }
  return groups;
}

}  // namespace

std::string write_refusals(const PlanTable& table, std::size_t name_width) {
  std::string text;
  for (const RefusalGroup& group : group_by_reason(table.refusals)) {
    const Refusal& refused = group.refused;
    const bool is_one = group.schedules.size() == 1;
    const std::string closest =
        refused.closest ? fmt::format(", closest {}", describe_differences(*refused.closest)) : "";
    const std::string tried =
        refused.configurations > 0 ? counted(refused.configurations, "configuration") : "not tried";
    text += fmt::format("  {:<{}} {}{}: {}{}\n",
                        is_one ? refused.schedule : counted(group.schedules.size(), "schedule"),
                        name_width, tried, closest, refused.reason,
                        is_one ? "" : fmt::format(" ({})", fmt::join(group.schedules, ", ")));
  }
  return text.empty() ? text : "\nleft out:\n" + text;
}

}  // namespace bubblescope::traces
