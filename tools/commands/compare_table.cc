// Lays out compare's table.
#include "tools/commands/compare_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "sim/analysis/highest_peak.h"
#include "sim/ir/bytes_text.h"
#include "sim/ir/number.h"
#include "sim/ir/op_kinds.h"
#include "tools/commands/vs_best.h"
#include "traces/text/time_axis.h"

namespace bubblescope::tools {

std::int64_t max_sends(const BubbleReport& report) {
  std::int64_t sends = 0;
  for (const RankReport& rank : report.ranks) sends = std::max(sends, rank.sends);
  return sends;
}

Nanos whole_step(const BubbleReport& report) {
  return report.job ? report.job->step : report.makespan;
}

bool trains(const Schedule& schedule) {
  return has_kind(schedule, OpKind::kBackward) || has_kind(schedule, OpKind::kInputGrad);
}

namespace {

std::string percent(double fraction) { return fmt::format("{:.2f}%", 100 * fraction); }

/// Formats by how much a makespan exceeds another time; "-" where only the other is 0.
std::string above(Nanos makespan, Nanos base) {
  if (base == 0 && makespan > 0) return "-";
  return fmt::format("{:+.2f}%", 100 * fraction(makespan - base, base));
}

/// Whether a rank of the row's model needs more memory than its device has.
bool is_too_full(const ComparedRow& row) {
  const std::optional<ModelFit> fit = find_row_fit(row);
  return fit && !fit->fits();
}

double microbatches_of(const ComparedRow& row) {
  return static_cast<double>(row.step->schedule->shape.microbatches);
}

double time_per_microbatch(const ComparedRow& row) {
  return static_cast<double>(whole_step(row.step->report)) / microbatches_of(row);
}

bool differ_in_gradients(const std::vector<ComparedRow>& rows) {
  std::string first;
  for (const ComparedRow& row : rows) {
    const std::string gradients = gradients_of(row);
    if (first.empty()) first = gradients;
    if (!gradients.empty() && gradients != first) return true;
  }
  return false;
}

/// The steps of the rows that have one.
std::vector<RankedStep> rank_steps(const std::vector<ComparedRow>& rows) {
  std::vector<RankedStep> steps;
  for (const ComparedRow& row : rows)
    if (row.step)
      steps.push_back({whole_step(row.step->report), row.step->schedule->shape.microbatches,
                       trains(*row.step->schedule), is_over_limits(row)});
  return steps;
}

std::string excess_text(double excess) {
  return std::isnan(excess) ? "-" : fmt::format("{:+.2f}%", 100 * excess);
}

/// The columns of memory, where a model has it in bytes.
template <class Add>
void add_memory_columns(const Add& add, const std::vector<ComparedRow>& rows) {
  if (std::none_of(rows.begin(), rows.end(), [](const auto& row) { return find_row_fit(row); }))
    return;
  const auto bytes_of = [](const ComparedRow& row, Bytes ModelFit::*bytes) {
    const std::optional<ModelFit> fit = find_row_fit(row);
    return fit ? gibibytes_text((*fit).*bytes) : "-";
  };
  using Report = const BubbleReport&;
  add("peak GiB", 4,
      [&](const ComparedRow& row, Report) { return bytes_of(row, &ModelFit::peak); });
  add("free", 3,
      [&](const ComparedRow& row, Report) { return bytes_of(row, &ModelFit::head_room); });
  if (std::any_of(rows.begin(), rows.end(), is_too_full))
    add("fits", 9, [](const ComparedRow& row, Report) { return is_too_full(row) ? "NO" : "yes"; });
  if (differ_in_gradients(rows))
    add("gradients", 9, [](const ComparedRow& row, Report) { return gradients_of(row); });
}

/// Whether the whole step of any row is not its makespan.
bool has_job_steps(const std::vector<ComparedRow>& rows) {
  return std::any_of(rows.begin(), rows.end(),
                     [](const ComparedRow& row) { return row.step && row.step->report.job; });
}

}  // namespace

std::string gradients_of(const ComparedRow& row) {
  if (!row.step || !row.step->models.placed) return {};
  return name_of(kGradientFormats, row.step->models.placed->on.parallel.gradients);
}

std::optional<ModelFit> find_row_fit(const ComparedRow& row) {
  if (!row.step || !row.step->models.placed) return {};
  return find_fit(*row.step->models.placed, row.step->report);
}

bool differ_in_microbatches(const std::vector<ComparedRow>& rows) {
  const ComparedRow* first = nullptr;
  for (const ComparedRow& row : rows) {
    if (!row.step) continue;
    if (first == nullptr) first = &row;
    if (microbatches_of(row) != microbatches_of(*first)) return true;
  }
  return false;
}

bool is_over_limits(const ComparedRow& row) { return is_too_full(row) || !row.refusal.empty(); }

std::vector<double> excesses_over_best(const std::vector<ComparedRow>& rows) {
  const std::vector<double> of_steps = find_excesses(rank_steps(rows));
  std::vector<double> excesses;
  std::size_t step = 0;
  for (const ComparedRow& row : rows)
    excesses.push_back(row.step ? of_steps.at(step++) : std::numeric_limits<double>::quiet_NaN());
  return excesses;
}

std::vector<traces::TableColumn> columns_of_rows(const std::vector<ComparedRow>& rows) {
  const std::vector<double> excesses = excesses_over_best(rows);
  std::vector<traces::TableColumn> columns;
  const auto add = [&](const char* head, int importance, auto&& cell) {
    traces::TableColumn& next = columns.emplace_back();
    next.head = head;
    next.importance = importance;
    for (const ComparedRow& row : rows)
      if (row.step) next.cells.push_back(cell(row, row.step->report));
  };
  using Report = const BubbleReport&;
  add("schedule", traces::kAlwaysShown, [](const ComparedRow& row, Report) { return row.name; });
  columns.back().left = true;
  add("makespan", traces::kAlwaysShown,
      [](const ComparedRow&, Report report) { return traces::format_time(report.makespan); });
  if (has_job_steps(rows))
    add("step", traces::kAlwaysShown,
        [](const ComparedRow&, Report report) { return traces::format_time(whole_step(report)); });
  if (differ_in_microbatches(rows))
    add("per mb", 9, [](const ComparedRow& row, Report) {
      return traces::format_time(static_cast<Nanos>(time_per_microbatch(row)));
    });
  add("vs best", 8, [&](const ComparedRow& row, Report) {
    return excess_text(excesses[static_cast<std::size_t>(&row - rows.data())]);
  });
  add("bubble", 7, [](const ComparedRow&, Report report) { return percent(report.bubble->ratio); });
  add("span rate", 1,
      [](const ComparedRow&, Report report) { return percent(report.bubble->span_rate); });
  add("over bound", 5,
      [](const ComparedRow&, Report report) { return above(report.makespan, report.lower_bound); });
  add("peak act", 6, [](const ComparedRow&, Report report) {
    return fmt::format("{:.4g}", find_highest_peak(report).activations);
  });
  add("sends", 2,
      [](const ComparedRow&, Report report) { return std::to_string(max_sends(report)); });
  add_memory_columns(add, rows);
  return columns;
}

namespace {

/// Whether some row that exceeds its limits, and cannot be chosen, is faster than one that respects
/// them.
bool are_misfits_faster(const std::vector<ComparedRow>& rows) {
  const auto is_misfit = [](const ComparedRow& row) { return row.step && is_over_limits(row); };
  const auto fits = [](const ComparedRow& row) { return row.step && !is_over_limits(row); };
  return std::any_of(rows.begin(), rows.end(), [&](const ComparedRow& misfit) {
    if (!is_misfit(misfit)) return false;
    return std::any_of(rows.begin(), rows.end(), [&](const ComparedRow& row) {
      return fits(row) && trains(*row.step->schedule) == trains(*misfit.step->schedule) &&
             time_per_microbatch(misfit) < time_per_microbatch(row);
    });
  });
}

}  // namespace

std::string describe_columns(const std::vector<ComparedRow>& rows) {
  std::string text;
  text +=
      "\nbubble: idle share of all ranks' time; span rate: the zero-bubble papers' rate; over "
      "bound:\n"
      "above the lower bound; peak act: micro-batches held on the fullest rank; sends: of the "
      "busiest\n";
  if (are_misfits_faster(rows))
    text +=
        "vs best: the best is that of the rows that fit; a faster one that does not has a minus\n";
  if (lack_fitting_step(rank_steps(rows)))
    text += "vs best: no row fits, so that the best is the fastest of all\n";
  if (has_job_steps(rows))
    text +=
        "step: of the whole job, with the replicas and the time outside the pipeline of its "
        "costs\n";
  return text;
}

}  // namespace bubblescope::tools
