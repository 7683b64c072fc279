// Measures schedules together with those that calibrate their costs.
#include "tools/commands/compare_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <utility>

#include "exec/gpu/host/device_backend.h"
#include "exec/training/expect_trainable.h"
#include "sim/predict/choose_lowering.h"
#include "tools/commands/calibrate_costs.h"
#include "tools/commands/compare_table.h"
#include "tools/commands/measure_together.h"
#include "tools/commands/step_clocks.h"
#include "tools/inputs/inputs.h"
#include "tools/inputs/load_schedule.h"
#include "tools/inputs/predict.h"
#include "tools/print.h"

namespace bubblescope::tools {

namespace {

/// A schedule that is run to measure costs.
struct Calibrator {
  ValidSchedule schedule;
  Program program;
};

std::string shape_flags(const ShapeOptions& shape) {
  const std::string chunks = shape.chunks ? fmt::format(" --vpp {}", *shape.chunks) : "";
  return fmt::format(" --pp {} -m {}{}", shape.ranks.value_or(2), shape.microbatches.value_or(8),
                     chunks);
}

bool has_gradients(const Schedule& schedule, const exec::TrainingOptions& options) {
  try {
    exec::expect_trainable(schedule, options);
  } catch (const Error&) {
    return false;
  }
  return true;
}

bool lacks_costs(const MeasuredComparison& request) {
  return request.context.run.work == WorkKind::kTransformer &&
         request.context.inputs.flags().cost.file.empty();
}

/// Costs can be measured beside the schedules where all of them have the same ranks, and ranks do
/// not share a device.
void expect_calibratable(const std::vector<ComparedRow>& rows, const MeasuredComparison& request) {
  const std::string& backend = request.context.run.backend;
  const ShapeOptions& shape = request.context.inputs.flags().shape;
  const bool is_one_shape =
      shape.ranks && shape.microbatches &&
      std::all_of(rows.begin(), rows.end(), [&](const ComparedRow& row) {
        return !row.step || (row.step->schedule->shape.ranks == *shape.ranks &&
                             row.step->schedule->shape.slices == 1);
      });
  if (exec::find_device_backend(backend) == nullptr && is_one_shape) return;
  throw Error(fmt::format(
      "nothing is known of what a transformer's ops cost here; measure it: 'bubblescope "
      "calibrate{} -o costs.json', with the flags of the transformer, then --costs costs.json",
      shape_flags(shape)));
}

/// Loads schedules that measure all kinds of ops, with other numbers of micro-batches than those
/// that are compared.
std::vector<Calibrator> load_calibrators(std::int32_t chunks, const MeasuredComparison& request) {
  const PredictInputs inputs = request.context.inputs.with([&](PredictOptions& flags) {
    flags.injections = {};
    flags.shape.chunks = chunks > 1 ? std::optional(chunks) : std::nullopt;
    const std::int32_t ranks = *flags.shape.ranks;
    flags.shape.microbatches = (*flags.shape.microbatches / ranks + 1) * ranks;
  });
  std::vector<Calibrator> calibrators;
  for (const char* const name :
       {chunks > 1 ? "interleaved" : "1f1b", chunks > 1 ? "interleaved-zb" : "zb-h1"}) {
    ValidSchedule schedule = load_valid_schedule(name, inputs, CostUse::kOrderOnly);
    Program program = lower_or_explain(
        schedule, choose_calibration_lowering(inputs, request.context.run, schedule));
    calibrators.push_back({std::move(schedule), std::move(program)});
  }
  return calibrators;
}

/// Appends lines to the file of results, each complete when it is there.
class ResultsFile {
 public:
  explicit ResultsFile(const std::string& path) {
    if (path.empty()) return;
    file_.open(path, std::ios::trunc);
    if (!file_) throw Error("--results " + path + ": the file cannot be written");
  }

  void write(const Comparison& comparison) {
    if (!file_.is_open()) return;
    file_ << write_result_line(comparison) << std::flush;
    if (!file_) throw Error(Fault::kMachine, "--results: the file cannot be written any more");
  }

 private:
  std::ofstream file_;
};

/// The run without its injected faults, whose ops measure costs.
class CalibratedRun {
 public:
  CalibratedRun(const std::vector<ComparedRow>& rows, const MeasuredComparison& request)
      : request_(request), clean_(request.context.inputs.with([](PredictOptions& flags) {
          flags.injections = {};
          flags.policy.reset();
        })) {
    if (!lacks_costs(request)) return;
    expect_calibratable(rows, request);
    const auto has = [&](std::int32_t chunks) {
      return std::any_of(rows.begin(), rows.end(), [&](const ComparedRow& row) {
        return row.step && row.step->schedule->stages_per_pipeline() ==
                               row.step->schedule->shape.ranks * chunks;
      });
    };
    if (has(1)) narrow_ = load_calibrators(1, request);
    if (has(2)) wide_ = load_calibrators(2, request);
    if (narrow_.empty()) std::swap(narrow_, wide_);
  }

  void add_to(std::vector<Measurable>& programs) const {
    for (const std::vector<Calibrator>* const group : {&narrow_, &wide_})
      for (const Calibrator& each : *group)
        programs.push_back({each.schedule, each.program, context_});
  }

  std::size_t size() const { return narrow_.size() + wide_.size(); }

  /// Takes the measurements of the calibrators and returns the inputs with their costs.
  PredictInputs price(std::vector<Measurement> measurements) const {
    const PredictInputs& given = request_.context.inputs;
    if (size() == 0) return given;
    const auto split = measurements.begin() + static_cast<std::ptrdiff_t>(narrow_.size());
    std::vector<Measurement> wide(std::make_move_iterator(split),
                                  std::make_move_iterator(measurements.end()));
    measurements.erase(split, measurements.end());
    PredictOptions flags = given.flags();
    flags.cost.file = "costs measured beside the schedules";
    flags.cost.any_uniform = false;
    InputFiles files = given.files();
    files.costs =
        make_measured_costs(std::move(measurements), std::move(wide), {context_, false}).table;
    files.costs->file = flags.cost.file;
    return PredictInputs(std::move(flags), std::move(files));
  }

 private:
  const MeasuredComparison& request_;
  PredictInputs clean_;
  RunContext context_{clean_, request_.context.run, request_.context.processes};
  std::vector<Calibrator> narrow_;  ///< measure the costs of the stages
  std::vector<Calibrator> wide_;    ///< and of those between, for more chunks per rank
};

/// The inputs of the rows in which ranks keep their order, and of those in which they choose.
struct RowInputs {
  PredictInputs fixed;
  PredictInputs chosen;

  explicit RowInputs(const PredictInputs& inputs)
      : fixed(inputs.with([](PredictOptions& flags) { flags.policy.reset(); })), chosen(inputs) {}

  const PredictInputs& of(const ComparedRow& row) const { return row.hint ? chosen : fixed; }
  /// Predicts the row again.
  TimedStep predict(const ComparedRow& row) const {
    return tools::predict_timed_step(row.hint ? *row.hint : row.step->schedule, of(row));
  }
};

/// Predicts a step for the clock at which it was measured, and judges that by the measurement.
Comparison judge_at_clock(const ComparedRow& row, Measurement measured, const PredictInputs& inputs,
                          const RunOptions& run) {
  const std::optional<double> sm_mhz = find_sm_mhz(measured);
  std::optional<PredictInputs> scaled;
  if (sm_mhz) scaled = at_clock(inputs, row.step->schedule->shape.ranks, *sm_mhz);
  Comparison comparison = judge_prediction(
      row.name, scaled ? predict_timed_step(row.step->schedule, *scaled) : *row.step,
      std::move(measured), run);
  comparison.measured_sm_mhz = sm_mhz;
  if (inputs.files().costs) comparison.costs_sm_mhz = inputs.files().costs->sm_mhz;
  return comparison;
}

/// The rows to run. Where ranks choose, their hint runs, and not the order that is predicted.
class MeasuredRows {
 public:
  /// Refers to all of its arguments.
  MeasuredRows(const std::vector<ComparedRow>& rows, const RowInputs& inputs,
               const RunContext& context)
      : rows_(rows),
        fixed_{inputs.fixed, context.run, context.processes},
        chosen_{inputs.chosen, context.run, context.processes} {
    const Config& config = inputs.chosen.config();
    for (const ComparedRow& row : rows)
      hints_.push_back(row.hint ? lower_or_explain(*row.hint, choose_lowering(*row.hint, config))
                                : Program{});
  }

  void add_to(std::vector<Measurable>& programs) const {
    for (std::size_t at = 0; at < rows_.size(); ++at) {
      const ComparedRow& row = rows_[at];
      if (row.hint)
        programs.push_back({*row.hint, hints_[at], chosen_});
      else
        programs.push_back({row.step->schedule, row.step->program, fixed_});
    }
  }

 private:
  const std::vector<ComparedRow>& rows_;
  RunContext fixed_;
  RunContext chosen_;
  std::vector<Program> hints_;  ///< per row; empty where ranks keep their order
};

void expect_unbroken(const std::vector<Measurement>& measurements) {
  if (measurements.empty() || !measurements.back().breakdown) return;
  const exec::Breakdown& breakdown = *measurements.back().breakdown;
  throw Error(breakdown.fault, measurements.back().step.schedule->name + ": " + breakdown.message);
}

}  // namespace

std::vector<Comparison> compare_rows(std::vector<ComparedRow> rows,
                                     const MeasuredComparison& request) {
  const RunOptions& run = request.context.run;
  std::erase_if(rows, [&](const ComparedRow& row) {
    return run.work == WorkKind::kTransformer && row.of_all &&
           !has_gradients(row.step->schedule, run.training);
  });
  for (const ComparedRow& row : rows)
    if (!row.step) print_message("bubblescope: {}\n", row.refusal);
  std::erase_if(rows, [](const ComparedRow& row) { return !row.step; });
  if (rows.empty()) return {};
  const CalibratedRun calibrated(rows, request);
  std::vector<Measurable> programs;
  calibrated.add_to(programs);
  const RowInputs given(request.context.inputs);
  const MeasuredRows measured(rows, given, request.context);
  measured.add_to(programs);
  const bool reports = request.context.processes.is_coordinator();
  ResultsFile results(reports ? request.results_file : "");
  const std::size_t first = calibrated.size();
  std::vector<Measurement> measurements =
      measure_together(programs, [&](std::size_t index, const Measurement& measurement) {
        if (first == 0 && reports)
          results.write(judge_at_clock(rows[index], measurement, given.of(rows[index]), run));
      });
  expect_unbroken(measurements);
  std::vector<Measurement> own(
      std::make_move_iterator(measurements.begin() + static_cast<std::ptrdiff_t>(first)),
      std::make_move_iterator(measurements.end()));
  measurements.erase(measurements.begin() + static_cast<std::ptrdiff_t>(first), measurements.end());
  const RowInputs priced(calibrated.price(std::move(measurements)));
  std::vector<Comparison> comparisons;
  for (std::size_t at = 0; at < rows.size(); ++at) {
    if (first > 0) rows[at].step = priced.predict(rows[at]);
    comparisons.push_back(judge_at_clock(rows[at], std::move(own[at]), priced.of(rows[at]), run));
    comparisons.back().over_limits = is_over_limits(rows[at]);
    if (first > 0 && reports) results.write(comparisons.back());
  }
  return comparisons;
}

}  // namespace bubblescope::tools
