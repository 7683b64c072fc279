// calibrate: measures the costs of ops and messages, and writes them as a cost file.
#include <fmt/format.h>

#include <utility>

#include "exec/gpu/host/device_backend.h"
#include "sim/ir/counted.h"
#include "tools/commands/calibrate_costs.h"
#include "tools/commands/calibrate_gpu.h"
#include "tools/commands/exports.h"
#include "tools/commands/measure_together.h"
#include "tools/flags/command_flags.h"
#include "tools/flags/schedule_list.h"
#include "tools/inputs/inputs.h"
#include "tools/inputs/load_schedule.h"
#include "tools/print.h"
#include "traces/costs/cost_file_writer.h"
#include "traces/files/format.h"

namespace bubblescope::tools {

namespace {

constexpr const char* kCalibrateExample =
    "example: measure two stages, then judge the prediction of another shape\n"
    "  bubblescope calibrate --backend cpu --work transformer --pp 2 -m 16 -o costs.json\n"
    "  bubblescope compare 1f1b,zb-h1 --pp 2 -m 8 --costs costs.json --backend cpu \\\n"
    "      --work transformer\n"
    "or a device's GEMMs, for models:\n"
    "  bubblescope calibrate --gpu h100 --backend cuda -o my_gpu.json\n"
    "  bubblescope simulate 1f1b --pp 4 -m 8 --model llama3-8b --gpu my_gpu.json\n"
    "SCHEDULES are run for it: 1f1b and zb-h1 unless given, for a transformer on two ranks "
    "also interleaved and interleaved-zb; with --vpp, only those two. What they do not run (a full "
    "backward, a split one) is not measured.\n";

std::vector<std::string> expand_schedules(const std::string& list, const ShapeOptions& shape) {
  if (!list.empty()) {
    std::vector<std::string> names = list_schedules(list);
    if (names.empty()) throw Error("calibrate needs schedules, such as 1f1b,zb-h1, or none");
    return names;
  }
  if (shape.chunks.value_or(1) > 1) return {"interleaved", "interleaved-zb"};
  return {"1f1b", "zb-h1"};
}

struct Request {
  std::vector<std::string> schedules;
  PredictInputs inputs;
  RunOptions run;
  bool finds_middle_stages = false;  ///< if they are not among the schedules' own
  bool contention = true;            ///< also measures by the number of busy ranks of a device
};

/// A schedule to run and its program, whose references stay valid.
struct Calibrated {
  ValidSchedule schedule;
  Program program;
};

/// Two stages are the first and the last; those between are measured with two chunks per rank.
bool needs_middle_stages(const Request& request, const Schedule& schedule) {
  return request.finds_middle_stages && schedule.stages() == 2 && schedule.shape.ranks == 2 &&
         schedule.shape.microbatches % 2 == 0 && request.run.work == WorkKind::kTransformer &&
         exec::find_device_backend(request.run.backend) == nullptr;
}

std::vector<Calibrated> load(const std::vector<std::string>& names, const Request& request) {
  std::vector<Calibrated> loaded;
  for (const std::string& name : names) {
    ValidSchedule schedule = load_valid_schedule(name, request.inputs, CostUse::kOrderOnly);
    Program program = lower_or_explain(
        schedule, choose_calibration_lowering(request.inputs, request.run, schedule));
    loaded.push_back({std::move(schedule), std::move(program)});
  }
  return loaded;
}

/// Measures the schedules, and after them those with more chunks, if there are any.
CalibratedCosts measure_costs(Request request, const exec::Processes& processes) {
  std::vector<Calibrated> runs = load(request.schedules, request);
  const std::size_t own = runs.size();
  if (needs_middle_stages(request, runs[0].schedule)) {
    Request wider = request;
    wider.inputs = request.inputs.with([](PredictOptions& flags) { flags.shape.chunks = 2; });
    for (Calibrated& each : load({"interleaved", "interleaved-zb"}, wider))
      runs.push_back(std::move(each));
  }
  const RunContext context{request.inputs, request.run, processes};
  std::vector<Measurable> programs;
  for (const Calibrated& each : runs) programs.push_back({each.schedule, each.program, context});
  std::vector<Measurement> measurements = measure_together(programs, [](auto...) {});
  if (const auto& breakdown = measurements.back().breakdown)
    throw Error(breakdown->fault,
                measurements.back().step.schedule->name + ": " + breakdown->message);
  if (processes.is_coordinator())
    for (const Calibrated& each : runs)
      print_message("measured {} of {}\n", counted(request.run.steps, "step"), each.schedule->name);
  std::vector<Measurement> wider;
  std::move(measurements.begin() + static_cast<std::ptrdiff_t>(own), measurements.end(),
            std::back_inserter(wider));
  measurements.erase(measurements.begin() + static_cast<std::ptrdiff_t>(own), measurements.end());
  return make_measured_costs(std::move(measurements), std::move(wider),
                             {context, request.contention});
}

}  // namespace

int run_calibrate(const Arguments& arguments) {
  CommandFlags app{"Measure what ops and messages cost, and write a --costs file",
                   "bubblescope calibrate"};
  std::string list;
  std::string output = "-";
  CalibrateGpuRequest gpu;
  PredictOptions flags;
  Request request;
  request.run.backend = "cpu";
  request.run.work = WorkKind::kTransformer;
  request.run.steps = 10;
  app.add_option("SCHEDULES", list, "schedules to run, separated by commas");
  app.add_option("-o,--output", output, "file for the costs; - for stdout")->type_name("FILE");
  add_predict_options(app, flags);
  add_run_options(app, request.run);
  app.add_flag("!--no-contention", request.contention,
               "GPUs: do not measure how ranks of one device slow each other");
  app.accept_old_name("--no-company", "--no-contention");
  app.add_option(
         "--gpu", gpu.like,
         "measure the GEMMs of a device instead of a schedule, and write a device file for --gpu; "
         "the preset NAME gives what is not measured")
      ->type_name("NAME");
  app.add_option("--seconds", gpu.seconds, "with --gpu: about how long to measure (default 60)")
      ->check(InRange(0.01, 3600.0));
  app.footer(kCalibrateExample);
  if (!app.parse(arguments)) return 0;
  expect_folder(output);
  if (!gpu.like.empty()) {
    if (!list.empty())
      throw Error("--gpu measures a device and runs no SCHEDULES; give one of both");
    gpu.backend = request.run.backend;
    write_and_report(output, calibrate_gpu(gpu));
    return 0;
  }
  if (app.count("--seconds") > 0)
    throw Error("--seconds limits the measurements of --gpu; --steps are those of schedules");
  choose_measured_work(app, request.run);
  request.finds_middle_stages = list.empty();
  request.schedules = expand_schedules(list, flags.shape);
  request.inputs = read_inputs(std::move(flags), request.schedules);
  BackendSession session(request.run);
  if (session.processes().is_coordinator())
    warn_of_unused_run_options(app, request.run, request.inputs.flags().cost.any_uniform);
  const CalibratedCosts costs = measure_costs(std::move(request), session.processes());
  if (session.start_reporting_or_wait())
    write_and_report(output, traces::write_cost_file(costs.table, [&](traces::JsonWriter& json) {
                       write_evidence_json(json, costs.measured);
                     }));
  return 0;
}

}  // namespace bubblescope::tools
