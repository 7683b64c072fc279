// Says what predictions of a measured job with other schedules assume that its trace does not show.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/ir/valid_schedule.h"
#include "sim/model/cost_table.h"
#include "sim/predict/predict.h"
#include "sim/predict/shared_work.h"
#include "traces/reports/tries.h"

namespace bubblescope::tools {

/// The measured job, and the work of a schedule besides its forwards and backwards.
struct FittedWork {
  const ValidSchedule& measured;
  const CostTable& costs;
  const SharedWork& shared;
};

/// Says that no prediction moves a layer to another stage than that which had it, or a part of it.
std::string describe_layer_split(const FittedWork& work);

/// Collects the assumptions of several predictions. With `is_short`, an assumption that many
/// schedules share is stated once for all of them.
class TryNotes {
 public:
  explicit TryNotes(bool is_short) : is_short_(is_short) {}

  /// Adds those of one prediction, and widens the intervals of its row by what may hold instead.
  void add(const FittedWork& work, const Prediction& tried, traces::TryRow& row);

  /// Returns whole sentences.
  std::vector<std::string> list() &&;

 private:
  void add_text(std::string text);

  bool is_short_;
  std::map<std::int32_t, std::vector<std::string>> restaged_;  ///< schedules by number of stages
  std::int32_t measured_stages_ = 0;
  bool widens_ends_ = false;  ///< a prediction depends on how the ends differ from other stages
  std::vector<std::string> texts_;
};

}  // namespace bubblescope::tools
