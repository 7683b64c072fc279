// Builds every schedule and predicts it beside the measured one.
#include "tools/commands/try_schedules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "schedules/search/schedule_search.h"
#include "sim/analysis/highest_peak.h"
#include "sim/ir/counted.h"
#include "sim/ir/error.h"
#include "sim/ir/op_kinds.h"
#include "sim/ir/quantile.h"
#include "sim/model/keep_workers.h"
#include "sim/model/model_step.h"
#include "sim/model/restage.h"
#include "sim/predict/predict.h"
#include "sim/predict/shared_work.h"
#include "tools/commands/try_notes.h"
#include "tools/flags/field_names.h"
#include "tools/inputs/schedule_request.h"
#include "traces/schedules/pytorch_csv.h"
#include "traces/text/wording.h"

namespace bubblescope::tools {

namespace {

std::string lacks_halves_of(const std::string& op) {
  return "needs " + op +
         " in two halves, and the trace shows it whole; --split-b 0.5 would halve it";
}

constexpr const char* kSearch = "search";
constexpr std::int64_t kSearchEffort = 50'000'000;
constexpr std::chrono::seconds kSearchTime{10};
constexpr std::int32_t kMaxLayers = 1024;  ///< a stage has one or more, and no model has so many

/// A predicted step: the shape that it is for, and its time in every scenario of the noise.
struct Tried {
  Prediction prediction;
  std::vector<double> steps = {};  ///< whole ones; one without noise
  double mean = 0;
  double peak = 0;
};

bool has_backward(const StageEntry& stage) {
  return stage.backward || stage.input_grad || stage.weight_grad;
}

/// Refuses a schedule that splits backwards which the trace shows whole.
void expect_halves(const Schedule& schedule, const CostTable& costs) {
  bool splits_stages = false;
  bool splits_shards = false;
  for (const RankOrder& ops : schedule.order)
    for (const Op& op : ops)
      if (op.kind == OpKind::kInputGrad)
        (schedule.is_side_stage(op.stage) ? splits_shards : splits_stages) = true;
  if (splits_stages && !costs.stages.front().input_grad)
    throw Error(lacks_halves_of("the backward"));
  if (splits_shards && !costs.stages.back().input_grad)
    throw Error(lacks_halves_of("the backward of the output layer's shards"));
}

Tried predict_try(ValidSchedule schedule, const FittedWork& work) {
  const CostTable& costs = work.costs;
  if (!has_kind(*schedule, OpKind::kBackward) && !has_kind(*schedule, OpKind::kInputGrad) &&
      has_backward(costs.stages.back()))
    throw Error("there is no backward, which the measured steps have: nothing is trained");
  expect_halves(*schedule, costs);
  Config config;
  config.costs = keep_workers(costs, *work.measured, *schedule);
  config.lower = work.shared.lower;
  config.moves = work.shared.moves;
  Tried tried{predict(std::move(schedule), config)};
  const BubbleReport& report = tried.prediction.report;
  const auto outside = static_cast<double>(report.job ? report.job->outside_pipeline : 0);
  if (report.noise)
    for (const Nanos makespan : report.noise->makespans)
      tried.steps.push_back(static_cast<double>(makespan) + outside);
  else
    tried.steps.push_back(static_cast<double>(report.makespan) + outside);
  for (const double step : tried.steps) tried.mean += step;
  tried.mean /= static_cast<double>(tried.steps.size());
  tried.peak = find_highest_peak(report).activations;
  return tried;
}

double per_microbatch(const Tried& tried, double step) {
  return step / static_cast<double>(tried.prediction.report.shape.microbatches);
}

traces::Interval interval_of(double mean, const std::vector<double>& values) {
  return {mean, quantile(values, 5), quantile(values, 95)};
}

traces::TryRow make_row(const std::string& name, const Tried& tried, const Tried& base) {
  const auto change = [&](double own, double of_base) {
    return per_microbatch(tried, own) / per_microbatch(base, of_base) - 1;
  };
  std::vector<double> changes;
  for (std::size_t at = 0; at < tried.steps.size(); ++at)
    changes.push_back(change(tried.steps[at], base.steps[at]));
  traces::TryRow row;
  row.schedule = name;
  row.microbatches = tried.prediction.report.shape.microbatches;
  row.step = interval_of(tried.mean, tried.steps);
  row.change = interval_of(change(tried.mean, base.mean), changes);
  row.peak_units = tried.peak;
  row.memory_ratio = base.peak == 0 ? 1 : tried.peak / base.peak;
  return row;
}

bool takes_chunks(const ScheduleDef& def) { return !def.implied_chunks || def.repeats_chunks; }

/// The chunks per rank: those of the measured schedule where this one can have as many.
std::int32_t choose_chunks(const ScheduleDef& def, const Shape& measured) {
  if (!takes_chunks(def)) return *def.implied_chunks;
  const std::int32_t min_chunks = def.implied_chunks.value_or(def.default_chunks);
  const bool fits =
      measured.chunks >= min_chunks && measured.chunks % def.implied_chunks.value_or(1) == 0;
  return fits ? measured.chunks : min_chunks;
}

/// Refuses more stages than any model has layers.
void expect_layers(std::int32_t chunks, const ScheduleDef& def, const Shape& measured) {
  const std::int32_t least = def.implied_chunks.value_or(def.default_chunks);
  const std::int32_t most = std::max({kMaxLayers / measured.ranks, measured.chunks, least});
  if (chunks <= most) return;
  throw Error(
      fmt::format("cannot have {} on each of {}: every stage has a layer at least, and {} are more "
                  "than models have; give --vpp from {} to {}",
                  counted(chunks, "chunk"), counted(measured.ranks, "rank"),
                  counted(std::int64_t{chunks} * measured.ranks, "layer"), least, most));
}

/// A schedule by its name, or "search", with the shape that it is tried in.
struct Wanted {
  std::string name;
  std::int32_t microbatches = 0;
  std::optional<std::int32_t> chunks = {};  ///< empty: nothing chooses them
};

/// Returns the costs by which a schedule is ordered. Without shards, make_request() cuts stages.
CostTable find_ordering_costs(const Shape& shape, std::int32_t shards, const CostTable& costs) {
  if (shards == 0) return costs;
  return restage(costs, make_unordered_schedule(shape, shards), shards);
}

ScheduleRequest make_try_request(const ScheduleDef& def, const Schedule& measured,
                                 const Wanted& wanted, const CostTable& costs) {
  PredictOptions flags;
  flags.shape.ranks = measured.shape.ranks;
  flags.shape.microbatches = wanted.microbatches;
  const std::int32_t chunks = wanted.chunks.value_or(choose_chunks(def, measured.shape));
  flags.shape.chunks = chunks;
  flags.shape = drop_unused_flags(flags.shape, def);
  flags.cost.file = costs.file;
  Shape shape = measured.shape;
  shape.chunks = chunks;
  return make_request(
      def, PredictInputs(std::move(flags),
                         {.costs = find_ordering_costs(shape, measured.side_stages, costs)}));
}

/// Returns the best order that holds no more micro-batches on any rank than the measured one.
ValidSchedule search_order(const ValidSchedule& measured, const Wanted& wanted, double peak,
                           const CostTable& costs) {
  ScheduleDef def;
  def.name = kSearch;
  def.implied_chunks = 1;
  def.reads_costs = true;
  ScheduleRequest request = make_try_request(def, *measured, wanted, costs);
  const auto cap = static_cast<Millionths>(std::ceil(peak)) * kWhole;
  request.memory.cap.assign(static_cast<std::size_t>(measured->shape.ranks), cap);
  schedules::SearchGoal goal;
  goal.effort = kSearchEffort;
  const auto end = std::chrono::steady_clock::now() + kSearchTime;
  goal.stop = [end] { return std::chrono::steady_clock::now() >= end; };
  const std::vector<std::string> reasons = schedules::refuse_goal(request, goal);
  if (!reasons.empty()) throw Error(reasons.front());
  return require_valid(schedules::search_schedule(request, goal).schedule);
}

ValidSchedule build_try(const Wanted& wanted, const ValidSchedule& measured, double peak,
                        const CostTable& costs) {
  const std::string& name = wanted.name;
  if (measured->side_stages > 0 && (name == kSearch || !find_schedule(name).splits_output_layer))
    throw Error(
        "the output layer is on one rank; the trace shows the time of its shards, and not what "
        "the whole of it takes there");
  if (name == kSearch) {
    if (!costs.stages.front().input_grad) throw Error(lacks_halves_of("the backward"));
    return search_order(measured, wanted, peak, costs);
  }
  const ScheduleDef& def = find_schedule(name);
  if (def.splits_output_layer && measured->side_stages == 0)
    throw Error("the output layer is split, whose time the trace does not show by itself");
  if (wanted.chunks) expect_layers(*wanted.chunks, def, measured->shape);
  return build_schedule(def, make_try_request(def, *measured, wanted, costs));
}

/// Every schedule with every number of micro-batches and, where it leaves them open, of chunks.
std::vector<Wanted> list_wanted(const ValidSchedule& measured, const TryOptions& options) {
  std::vector<std::int32_t> counts = options.microbatches;
  if (counts.empty()) counts.push_back(measured->shape.microbatches);
  std::vector<Wanted> wanted;
  bool any_takes_chunks = options.chunks.empty();
  for (const std::string& name : options.schedules) {
    std::vector<std::optional<std::int32_t>> chunks{std::nullopt};
    if (name != kSearch && takes_chunks(find_schedule(name)) && !options.chunks.empty()) {
      chunks.assign(options.chunks.begin(), options.chunks.end());
      any_takes_chunks = true;
    }
    for (const std::optional<std::int32_t>& of_rank : chunks)
      for (const std::int32_t count : counts) wanted.push_back({name, count, of_rank});
  }
  if (!any_takes_chunks)
    throw Error(
        "none of these schedules leaves the number of chunks per rank open, as interleaved does; "
        "leave --vpp out");
  return wanted;
}

/// The job that is tried, and its measured schedule with the fitted costs.
struct TriedJob {
  FittedWork work;
  const Tried& base;
  bool by_pytorch = false;
};

/// A row, with its schedule where it can be run.
struct TriedRow {
  traces::TryRow row;
  std::optional<ValidSchedule> schedule = {};
};

TriedRow try_one(const Wanted& wanted, const TriedJob& job, TryNotes& notes) try {
  const FittedWork& of_job = job.work;
  ValidSchedule schedule = build_try(wanted, of_job.measured, job.base.peak, of_job.costs);
  const SharedWork shared = find_shared_work(of_job.measured, of_job.shared.lower, schedule);
  const FittedWork work{of_job.measured, of_job.costs, shared};
  Tried one = predict_try(std::move(schedule), work);
  traces::TryRow row = make_row(wanted.name, one, job.base);
  if (wanted.chunks) row.chunks = *wanted.chunks;
  if (job.by_pytorch)
    row.refused_by_pytorch = traces::why_not_pytorch_csv(*one.prediction.schedule);
  notes.add(work, one.prediction, row);
  return {std::move(row), std::move(one.prediction.schedule)};
} catch (const Error& refused) {
  if (is_of_machine(refused.fault())) throw;
  traces::TryRow row;
  row.schedule = wanted.name;
  row.microbatches = wanted.microbatches;
  row.chunks = wanted.chunks;
  row.problem = name_flags(refused.what());
  return {std::move(row)};
}

/// The refused shapes of a schedule for one reason: "-m 9, -m 11 --vpp 4".
struct RefusedTry {
  std::string schedule;
  std::vector<std::string> shapes;
};

std::string shape_of(const traces::TryRow& row) {
  return fmt::format("-m {}", row.microbatches) +
         (row.chunks ? fmt::format(" --vpp {}", *row.chunks) : "");
}

/// The refused tries of "all" by reason, which does not begin with the name of a schedule.
std::map<std::string, std::vector<RefusedTry>> group_refused(const std::vector<TriedRow>& rows,
                                                             const std::set<std::string>& of_all) {
  std::map<std::string, std::vector<RefusedTry>> refused;
  for (const auto& [row, schedule] : rows) {
    if (schedule || !of_all.contains(row.schedule)) continue;
    const bool is_named = row.problem.starts_with(row.schedule + " ");
    std::vector<RefusedTry>& tries =
        refused[is_named ? row.problem.substr(row.schedule.size() + 1) : row.problem];
    if (tries.empty() || tries.back().schedule != row.schedule) tries.push_back({row.schedule, {}});
    tries.back().shapes.push_back(shape_of(row));
  }
  return refused;
}

/// Whether a row is better than another: it can be run, PyTorch does not refuse it, it is faster.
bool is_better(const TriedRow& left, const TriedRow& right) {
  const auto rank = [](const TriedRow& tried) {
    return std::tuple(!tried.schedule, !tried.row.refused_by_pytorch.empty(),
                      tried.row.change.mean);
  };
  return rank(left) < rank(right);
}

/// Moves the refused rows of "all" into notes, one for each reason, and the best to the front.
/// Notes name the shapes where a schedule is refused in some of them only.
void sort_all(traces::Tries& tries, std::vector<TriedRow>& rows,
              const std::set<std::string>& of_all) {
  std::map<std::string, std::size_t> asked;  // shapes of each schedule
  for (const TriedRow& tried : rows) ++asked[tried.row.schedule];
  for (const auto& [problem, of_reason] : group_refused(rows, of_all)) {
    std::vector<std::string> names;
    for (const auto& [name, shapes] : of_reason)
      names.push_back(shapes.size() == asked[name]
                          ? name
                          : fmt::format("{} ({})", name, fmt::join(shapes, ", ")));
    tries.notes.push_back(fmt::format("not tried: {}: {}", fmt::join(names, ", "), problem));
  }
  std::erase_if(rows, [&](const TriedRow& tried) {
    return !tried.schedule && of_all.contains(tried.row.schedule);
  });
  std::stable_sort(rows.begin(), rows.end(), is_better);
}

/// Says for each reason which schedules PyTorch refuses, and whether one of them would be the best.
std::vector<std::string> describe_refused_by_pytorch(const std::vector<TriedRow>& rows) {
  const auto best = std::min_element(rows.begin(), rows.end(), is_better);
  std::map<std::string, std::vector<std::string>> names_of_reason;
  std::set<std::string> faster;
  for (const auto& [row, schedule] : rows) {
    const std::string& refusal = row.refused_by_pytorch;
    if (refusal.empty()) continue;
    // Advice on other formats follows a semicolon.
    std::vector<std::string>& names = names_of_reason[refusal.substr(0, refusal.find(';'))];
    if (std::find(names.begin(), names.end(), row.schedule) == names.end())
      names.push_back(row.schedule);
    if (best->row.refused_by_pytorch.empty() && row.change.mean < best->row.change.mean)
      faster.insert(row.schedule);
  }
  std::vector<std::string> notes;
  for (const auto& [reason, names] : names_of_reason) {
    const bool is_faster = std::any_of(
        names.begin(), names.end(), [&](const std::string& name) { return faster.contains(name); });
    notes.push_back(fmt::format("PyTorch's pipeline runtime cannot run {}{}: {}",
                                traces::list_words(names),
                                is_faster ? ", so the best is another one" : "", reason));
  }
  return notes;
}

}  // namespace

std::vector<std::string> list_all_tries() {
  std::vector<std::string> names;
  for (const ScheduleDef& def : Registry<ScheduleDef>::instance().all())
    if (def.trains && def.flushes) names.push_back(def.name);
  return names;
}

TriedSchedules try_schedules(const ValidSchedule& measured, const LowerOptions& lower,
                             const CostTable& costs, const TryOptions& options) {
  for (const std::string& name : options.schedules)
    if (name != kSearch) find_schedule(name);
  const SharedWork measured_work{lower, {}};
  const FittedWork work{measured, costs, measured_work};
  const Tried base = predict_try(measured, work);
  TriedSchedules tried;
  tried.tries.rows.push_back(make_row(measured->name, base, base));
  std::vector<TriedRow> rows;
  TryNotes notes(!options.of_all.empty());
  for (const Wanted& wanted : list_wanted(measured, options))
    rows.push_back(try_one(wanted, {work, base, options.by_pytorch}, notes));
  tried.tries.notes = std::move(notes).list();
  if (std::any_of(rows.begin(), rows.end(), [](const TriedRow& one) { return one.schedule; }))
    tried.tries.notes.push_back(describe_layer_split(work));
  for (std::string& refused : describe_refused_by_pytorch(rows))
    tried.tries.notes.push_back(std::move(refused));
  if (!options.of_all.empty()) sort_all(tried.tries, rows, options.of_all);
  const auto best = std::min_element(rows.begin(), rows.end(), is_better);
  if (best != rows.end() && best->schedule) {
    tried.best = *best->schedule;
    tried.tries.best = tried.tries.rows.size() + static_cast<std::size_t>(best - rows.begin());
  }
  for (TriedRow& one : rows) tried.tries.rows.push_back(std::move(one.row));
  return tried;
}

std::vector<std::string> list_refused(const traces::Tries& tries, const TryOptions& options) {
  if (!options.of_all.empty() && !tries.best) return options.schedules;
  std::vector<std::string> refused;
  for (const traces::TryRow& row : tries.rows)
    if (!row.problem.empty())
      refused.push_back(fmt::format("{} ({})", row.schedule, shape_of(row)));
  return refused;
}

}  // namespace bubblescope::tools
