// The flags of `plan`.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tools/flags/command_flags.h"
#include "tools/flags/options.h"
#include "tools/flags/output_format.h"
#include "tools/plan/model_plan.h"
#include "tools/plan/plan_shards.h"
#include "tools/plan/what_if.h"

namespace bubblescope::tools {

/// The question of a plan. It names no file to write, so that a question from a journal cannot make
/// one.
struct PlanQuestion {
  std::vector<FlagWithValue> flags;  ///< as they were given
  /// Flags, given or not, for which every plan has a value of its own, or that it does not need.
  std::set<std::string, std::less<>> settled;
  Axes axes;  ///< empty: 4 ranks, 1 chunk, 8 micro-batches; for a model, whatever fits
  ModelAxes model_axes;
  std::string schedules = "auto";
  std::vector<std::string> not_in_profile;  ///< those of `schedules` that --profile refuses
  PredictOptions predict;
  bool whole_model = false;

  /// Whether the flag was given.
  bool gives(std::string_view flag) const;
  bool sliced() const { return predict.shape.slices.value_or(1) > 1; }
};

/// Options of running, saving and showing a plan.
struct PlanRun {
  std::optional<std::size_t> top;
  std::int32_t threads = 1;
  OutputFormat format = OutputFormat::kText;
  bool wide = false;  ///< all columns, whatever the terminal's width
  std::string svg;
  SweepFiles files;
};

struct PlanOptions : PlanQuestion, PlanRun {};

/// Parses the question of a journal. Throws Error for any other flag.
PlanQuestion parse_plan_question(const std::vector<std::string>& arguments);

/// Returns nullopt where --help was printed. Throws Error for flags that do not go together.
std::optional<PlanOptions> parse_plan_options(const std::vector<std::string>& arguments);

}  // namespace bubblescope::tools
