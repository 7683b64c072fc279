// Times plans under other costs than those that they were ranked by.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tools/plan/what_if.h"

namespace bubblescope::tools {

/// A cost flag that is varied.
struct CostParameter {
  std::string name;
  bool is_message = false;  ///< no chunk, slice or rank divides it
  Nanos& (*of)(UniformCost&);
};

/// Thrown where too many simulations would be needed.
struct TooManySimulations {};

/// Times plans while one parameter varies, each at most once per value. vary() comes first.
class PlanTimer {
 public:
  PlanTimer(const WhatIf& what_if, const std::vector<Plan>& ranked)
      : what_if_(what_if), ranked_(ranked), lowered_(ranked.size()), times_(ranked.size()) {}

  /// Discards the times of another parameter.
  void vary(const CostParameter& parameter);
  /// Returns the time per sample with the parameter at `value`.
  double time(std::size_t plan, Nanos value);
  /// Returns the time of the step with the parameter at `value`.
  Nanos step(std::size_t plan, Nanos value);
  /// Returns the current value of the flag.
  Nanos now() const;
  /// Whether a step is the longest path through a graph: a higher cost never makes it shorter.
  bool is_convex() const { return !what_if_.shares_links(); }
  /// The nanoseconds that all plans divide without rounding; nullopt if there are too many.
  std::optional<Nanos> unit() const;
  /// Whether other values of the parameter are rounded in other ways.
  bool rounds() const { return !parameter_->is_message && unit() != Nanos{1}; }
  /// Returns a lower bound of a plan's time while the flag is at least `min_value`; 0 where
  /// unknown.
  double bound(std::size_t plan, Nanos min_value);

 private:
  const WhatIf::Lowered& lower(std::size_t plan);

  const WhatIf& what_if_;
  const std::vector<Plan>& ranked_;
  const CostParameter* parameter_ = nullptr;
  std::vector<std::optional<WhatIf::Lowered>> lowered_;
  std::vector<std::map<Nanos, Nanos>> times_;
  std::int64_t held_ = 0;
  std::int64_t timed_ = 0;
};

}  // namespace bubblescope::tools
