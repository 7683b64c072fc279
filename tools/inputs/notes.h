// Prints the notes of a prediction to stderr, in the words of the command line.
#pragma once

#include <span>

#include "sim/predict/notes.h"
#include "sim/predict/predict.h"
#include "tools/inputs/inputs.h"

namespace bubblescope::tools {

/// Prints one line per note.
void print_notes(std::span<const Note> notes, const Schedule& schedule,
                 const PredictInputs& inputs);

/// Prints all notes on a predicted step, except for those that were `noted` before.
void print_step_notes(const Prediction& made, const PredictInputs& inputs,
                      std::span<const Note> noted);

/// Prints once for all `orders` of a plan that the stages of the cost file were cut or joined.
void note_restaged_plans(std::span<const ValidSchedule> orders, const PredictInputs& inputs);

/// Prints that a bare --cap is not a number of bytes, where activations have bytes.
void warn_of_cap_unit(const UniformMemory& memory);

}  // namespace bubblescope::tools
