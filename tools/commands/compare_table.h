// The table of compare: a row per schedule and shape.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/analysis/report.h"
#include "sim/predict/model_fit.h"
#include "tools/commands/compare_rows.h"
#include "traces/text/fit_table.h"

namespace bubblescope::tools {

/// The sends of the rank that sends most.
std::int64_t max_sends(const BubbleReport& report);

/// The step that users wait for: the whole job's where costs have replicas or time outside the
/// pipeline.
Nanos whole_step(const BubbleReport& report);

/// Whether the schedule has backwards.
bool trains(const Schedule& schedule);

/// Whether the row cannot be chosen: its memory is too small, or a rank exceeds its cap.
bool is_over_limits(const ComparedRow& row);

/// Returns the fullest rank of a row with a model; nullopt for other rows.
std::optional<ModelFit> find_row_fit(const ComparedRow& row);

/// The precision of a model's gradients ("fp32"), which a row chooses so that it fits its devices;
/// empty for other rows.
std::string gradients_of(const ComparedRow& row);

/// Whether steps differ in their number of micro-batches, so that times per micro-batch are
/// compared.
bool differ_in_microbatches(const std::vector<ComparedRow>& rows);

/// By how much the step of each row exceeds the best one, as find_excesses() has it. NaN for rows
/// without a step, too.
std::vector<double> excesses_over_best(const std::vector<ComparedRow>& rows);

/// Returns the columns, with a cell for each row that has a step. Some are shown only if they say
/// something: "step" if a whole step is longer than its makespan, "per mb" if steps have different
/// numbers of micro-batches, "fits" if a schedule does not fit the model's devices, and "gradients"
/// if precisions differ.
std::vector<traces::TableColumn> columns_of_rows(const std::vector<ComparedRow>& rows);

/// Says what the columns are, below the table.
std::string describe_columns(const std::vector<ComparedRow>& rows);

}  // namespace bubblescope::tools
