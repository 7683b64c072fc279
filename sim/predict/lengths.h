// Costs of a model whose micro-batches have sequences of different lengths.
#pragma once

#include "sim/predict/models.h"

namespace bubblescope::inline sim {

/// Returns the costs of a model whose `sequence_lengths` say how long the sequences of every
/// micro-batch are: those of the same model with all sequences of that length, for each
/// micro-batch. States and buffers are those of the longest. Throws Error where there is not one
/// length per micro-batch.
Models find_length_costs(ModelOnDevices on, const Schedule& schedule, MemoryModel memory);

}  // namespace bubblescope::inline sim
