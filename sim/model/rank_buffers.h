// Buffers of a rank beside its weights, states and activations: messages in transit, what one layer
// recomputes, gathered weights and inputs.
#pragma once

#include <cstdint>

#include "sim/ir/schedule.h"
#include "sim/model/stage_loads.h"

namespace bubblescope::inline sim {

/// The sum over all stages of a rank.
struct RankLoad {
  std::int64_t layers = 0;
  bool head = false;  ///< one of them is the last
  StageParameters parameters;
  double tables = 0;            ///< of `parameters`, those of the embedding and the head
  std::int64_t held_again = 0;  ///< StageLoad::held_again, at most

  void add(const StageLoad& stage);
  /// Returns the parameters per layer, without the tables.
  double per_layer() const { return (parameters.all() - tables) / static_cast<double>(layers); }
};

/// Bytes of a micro-batch's slice, as one tensor rank sends it.
double count_message_bytes(const ModelOnDevices& on, std::int32_t slices);

/// The buffers of a model's ranks. It refers to the model, which must outlive it.
class RankBuffers {
 public:
  RankBuffers(const ModelOnDevices& on, const Shape& shape);

  Bytes count(const RankLoad& load) const;

 private:
  const ModelOnDevices& on_;
  Bytes common_;  ///< what all ranks have, whatever their load
  Bytes layer_;   ///< what a layer that is recomputed whole holds
};

}  // namespace bubblescope::inline sim
