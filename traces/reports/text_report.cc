// Writes tables and sentences from a BubbleReport.
#include "traces/reports/text_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "sim/analysis/conclusions.h"
#include "sim/analysis/highest_peak.h"
#include "sim/ir/bytes_text.h"
#include "sim/ir/counted.h"
#include "traces/reports/held_text.h"
#include "traces/reports/parts_text.h"
#include "traces/reports/path_text.h"
#include "traces/text/fit_table.h"
#include "traces/text/palette.h"
#include "traces/text/shown_ranks.h"
#include "traces/text/time_axis.h"
#include "traces/text/wording.h"

namespace bubblescope::traces {

namespace {

/// Short headings, so that all columns fit side by side.
constexpr std::array<std::string_view, kIdleCauses> kCauseHeads{
    "warmup", "imbal", "depend", "comm", "memory", "drain", "sync", "arrive", "launch"};

std::string format_amount(double amount) { return trim_zeros(fmt::format("{:.2f}", amount)); }

class RankTable {
 public:
  RankTable(const StepRecord& record, const DrawOptions& options)
      : report_(record.report),
        program_(record.program),
        shown_(choose_shown_ranks(report_, options.all_ranks)),
        unit_(choose_unit(report_.makespan)) {
    if (options.fit) width_ = options.width;
    std::vector<Nanos> times;
    for (const std::int32_t rank : shown_) {
      times.push_back(report_.ranks[rank].busy);
      for (const Nanos idle : report_.ranks[rank].idle_by_cause) times.push_back(idle);
    }
    decimals_ = choose_decimals(times, unit_);
  }

  /// Draws what is known of ranks beside others whose traces are missing.
  std::string draw_busy() const {
    std::vector<TableColumn> columns{names()};
    columns.push_back(time_column("busy", [](const RankReport& rank) { return rank.busy; }));
    columns.back().cells.back().clear();  // a share of the makespan would be a bubble
    add_peaks(columns);
    return draw_table(columns, width_).text;
  }

  std::string draw() const {
    std::vector<TableColumn> columns{names()};
    columns.push_back(time_column("busy", [](const RankReport& rank) { return rank.busy; }));
    columns.push_back(time_column("idle", [](const RankReport& rank) { return rank.idle; }));
    for (std::size_t cause = 0; cause < kIdleCauses; ++cause)
      if (occurs(cause)) {
        columns.push_back(time_column(
            kCauseHeads[cause], [=](const RankReport& rank) { return rank.idle_by_cause[cause]; }));
        columns.back().is_part = true;
      }
    add_peaks(columns);
    columns.push_back(column(
        "sends", [](const RankReport& rank) { return std::to_string(rank.sends); },
        std::to_string(total([](const RankReport& rank) { return rank.sends; }))));
    for (TableColumn& column : columns) column.importance = importance_of(column.head);
    const FittedTable table = draw_table(
        columns, width_, [&](const std::vector<std::string>& heads) { return others(heads); });
    return table.text + describe_hidden(table.hidden);
  }

 private:
  /// Returns the total idle time of the causes with these headings, as one column.
  TableColumn others(const std::vector<std::string>& heads) const {
    return time_column("other", [&](const RankReport& rank) {
      Nanos sum = 0;
      for (std::size_t cause = 0; cause < kIdleCauses; ++cause)
        if (std::find(heads.begin(), heads.end(), kCauseHeads[cause]) != heads.end())
          sum += rank.idle_by_cause[cause];
      return sum;
    });
  }

  /// The importance of a column if not all fit: the amounts of idle time and memory matter more
  /// than their causes and times.
  int importance_of(std::string_view head) const {
    constexpr std::array<std::string_view, 5> kFirst{"sends", "at", "units", "sync", "warmup"};
    if (head == unit_.name) return kAlwaysShown;
    if (head == "memory") return 90;
    const auto found = std::find(kFirst.begin(), kFirst.end(), head);
    if (found != kFirst.end()) return static_cast<int>(found - kFirst.begin());
    return head == "busy" || head == "idle" || head == "peak" ? 100 : 50;
  }

  template <class Value>
  std::int64_t total(Value value) const {
    std::int64_t sum = 0;
    for (const RankReport& rank : report_.ranks)
      if (rank.is_recorded) sum += value(rank);
    return sum;
  }

  template <class Text>
  TableColumn column(std::string_view head, Text text, std::string all) const {
    TableColumn made{std::string(head), {}, false};
    for (const std::int32_t rank : shown_) made.cells.push_back(text(report_.ranks[rank]));
    made.cells.push_back(std::move(all));
    return made;
  }

  template <class Value>
  TableColumn time_column(std::string_view head, Value value) const {
    const auto text = [&](const RankReport& rank) {
      return format_in_unit(value(rank), unit_, decimals_);
    };
    const double all = static_cast<double>(report_.makespan) *
                       static_cast<double>(total([](const RankReport&) { return 1; }));
    return column(head, text,
                  format_percent(all > 0 ? static_cast<double>(total(value)) / all : 0));
  }

  TableColumn names() const {
    TableColumn made{std::string(unit_.name), {}, true};
    for (const std::int32_t rank : shown_) made.cells.push_back(fmt::format("rank {}", rank));
    made.cells.push_back("all");
    return made;
  }

  bool occurs(std::size_t cause) const {
    return std::any_of(report_.ranks.begin(), report_.ranks.end(),
                       [=](const RankReport& rank) { return rank.idle_by_cause[cause] != 0; });
  }

  /// Adds peaks in micro-batches, and in the memory model's unit and in bytes where those differ.
  void add_peaks(std::vector<TableColumn>& columns) const {
    const HighestPeak highest = find_highest_peak(report_);
    const bool own_unit = std::any_of(
        report_.ranks.begin(), report_.ranks.end(),
        [](const RankReport& rank) { return rank.peak.units != rank.peak.activations; });
    columns.push_back(column(
        "peak", [](const RankReport& rank) { return format_amount(rank.peak.activations); },
        format_amount(highest.activations)));
    columns.push_back(column(
        "at", [&](const RankReport& rank) { return op_at(rank.peak); }, ""));
    columns.back().left = true;
    if (own_unit)
      columns.push_back(column(
          "units", [](const RankReport& rank) { return format_amount(rank.peak.units); },
          format_amount(highest.units)));
    if (highest.bytes.value_or(0) > 0)
      columns.push_back(column(
          "memory",
          [](const RankReport& rank) { return format_bytes(rank.peak.bytes.value_or(0)); },
          format_bytes(*highest.bytes)));
  }

  std::string op_at(const Peak& peak) const {
    return peak.at ? to_string(program_.instructions[*peak.at].op) : "";
  }

  const BubbleReport& report_;
  const Program& program_;
  std::vector<std::int32_t> shown_;
  TimeUnit unit_;
  int decimals_ = 0;
  std::optional<int> width_;
};

bool lacks_ranks(const BubbleReport& report) {
  return std::any_of(report.ranks.begin(), report.ranks.end(),
                     [](const RankReport& rank) { return !rank.is_recorded; });
}

/// States the costs of a prediction; a measurement has none.
std::string costs_line(const StepRecord& record) {
  if (record.made.costs.empty() || record.report.source != "simulated") return {};
  return "costs        " + record.made.costs + "\n";
}

std::string totals(const BubbleReport& report) {
  const std::string makespan = format_time(report.makespan);
  const std::string bound = format_time(report.lower_bound);
  const auto width = std::max(makespan.size(), bound.size());
  const double above = report.lower_bound == 0
                           ? 0
                           : static_cast<double>(report.makespan - report.lower_bound) /
                                 static_cast<double>(report.lower_bound);
  return fmt::format("makespan     {:<{}}  ideal {} (work of the busiest rank)\n", makespan, width,
                     format_time(report.ideal)) +
         fmt::format("lower bound  {:<{}}  {}\n", bound, width,
                     report.makespan <= report.lower_bound
                         ? "reached: no order of these ops is faster"
                         : "the makespan is " + format_percent(above) + " above it") +
         fmt::format("bubble       ratio {}  overhead {}  span rate {}  time {}\n",
                     format_percent(report.bubble->ratio), format_percent(report.bubble->overhead),
                     format_percent(report.bubble->span_rate), format_time(report.bubble->time));
}

/// Writes two lines where training is asynchronous, none elsewhere.
std::string asynchronous(const BubbleReport& report) {
  std::string text;
  if (report.period)
    text += fmt::format("period       {} per micro-batch once the pipeline is full\n",
                        format_time(*report.period));
  WeightReport longest;
  for (const RankReport& rank : report.ranks) {
    if (!rank.weights) continue;
    longest.staleness = std::max(longest.staleness, rank.weights->staleness);
    longest.versions = std::max(longest.versions, rank.weights->versions);
    if (rank.weights->bytes)
      longest.bytes = std::max(longest.bytes.value_or(0), *rank.weights->bytes);
  }
  if (longest.versions > 0)
    text +=
        fmt::format("weights      up to {} on a rank, up to {} stale{}\n",
                    counted(longest.versions, "version"), counted(longest.staleness, "update"),
                    longest.bytes ? "; up to " + format_bytes(*longest.bytes) + " of them" : "");
  return text;
}

/// Writes one line where messages share links, none elsewhere.
std::string busiest_link(const BubbleReport& report) {
  if (report.links.empty()) return {};
  const LinkUse& link = report.links.front();
  const double busy = static_cast<double>(link.busy) / static_cast<double>(report.makespan);
  return fmt::format("busiest link {}: {} of its bandwidth used, busy {}, shared for {}\n",
                     link.name, format_percent(link.utilization), format_percent(busy),
                     format_time(link.shared));
}

/// Writes one line with noise, none elsewhere.
std::string noise_line(const BubbleReport& report) {
  if (!report.noise) return {};
  return fmt::format("noise        {}: p50 {}  p95 {}  mean {}  max {}\n",
                     counted(std::ssize(report.noise->makespans), "step"),
                     format_time(report.noise->p50), format_time(report.noise->p95),
                     format_time(static_cast<Nanos>(report.noise->mean)),
                     format_time(report.noise->longest));
}

/// Writes one line where a forward-only schedule serves micro-batches that arrive, none elsewhere.
std::string serving_line(const BubbleReport& report) {
  if (!report.serving) return {};
  const ServingReport& serving = *report.serving;
  return fmt::format(
      "serving      time to first token p50 {}  p95 {}  mean {}  max {}; {:.4g} micro-batches per "
      "second\n",
      format_time(serving.first_token_p50), format_time(serving.first_token_p95),
      format_time(static_cast<Nanos>(serving.first_token_mean)),
      format_time(serving.first_token_max), serving.microbatches_per_second);
}

/// Writes one line where the costs tell more of a step than one pipeline, none elsewhere.
std::string job_line(const BubbleReport& report) {
  if (!report.job) return {};
  const JobStep& job = *report.job;
  std::string text = fmt::format("step         {}", format_time(job.step));
  if (report.noise) text += " in the mean";
  if (job.replicas > 1)
    text += fmt::format(", of the slowest of {}", counted(job.replicas, "replica"));
  if (job.outside_pipeline > 0)
    text += fmt::format(", with {} outside the pipeline", format_time(job.outside_pipeline));
  return text + "\n";
}

/// Formats a change with its sign, because a slower op can make a step shorter if messages share
/// links.
std::string format_change(Nanos change) { return (change < 0 ? "" : "+") + format_time(change); }

std::string highest_peak(const StepRecord& record) {
  const std::vector<RankReport>& ranks = record.report.ranks;
  const auto highest = std::max_element(ranks.begin(), ranks.end(),
                                        [](const RankReport& left, const RankReport& right) {
                                          return left.peak.activations < right.peak.activations;
                                        });
  if (highest == ranks.end() || !highest->peak.at) return {};
  std::string held = format_amount(highest->peak.activations) +
                     (highest->peak.activations == 1 ? " micro-batch" : " micro-batches");
  if (record.report.shape.chunks > 1)
    held += " (" + format_amount(highest->peak.chunks) + " chunks)";
  return fmt::format("highest peak: rank {} holds {} at {} ({})\n", highest - ranks.begin(), held,
                     to_string(record.program.instructions[*highest->peak.at].op),
                     format_time(record.timeline.start[*highest->peak.at] -
                                 find_step_bounds(record.timeline).start));
}

}  // namespace

std::string write_sensitivity_text(const BubbleReport& report) {
  if (!report.sensitivity) return {};
  constexpr std::size_t kShown = 4;
  const Sensitivity& sensitivity = *report.sensitivity;
  std::string text = "1 % more of";
  for (std::size_t kind = 0; kind < kBusyKinds; ++kind)
    if (sensitivity.by_kind[kind] != 0)
      text += fmt::format("  {} {}", name(static_cast<BusyKind>(kind)),
                          format_change(sensitivity.by_kind[kind]));
  std::vector<std::size_t> ranks(sensitivity.by_rank.size());
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) ranks[rank] = rank;
  std::stable_sort(ranks.begin(), ranks.end(), [&](std::size_t left, std::size_t right) {
    return sensitivity.by_rank[left] > sensitivity.by_rank[right];
  });
  for (std::size_t at = 0; at < std::min(kShown, ranks.size()); ++at)
    text += fmt::format("  rank {} {}", ranks[at], format_change(sensitivity.by_rank[ranks[at]]));
  return text + "\n";
}

std::string write_text_report(const StepRecord& record, const DrawOptions& options) {
  if (!is_conclusive(record.report)) {
    const std::string makespan = fmt::format("makespan     {} of the ops that were seen\n",
                                             format_time(record.report.makespan));
    return makespan +
           (lacks_ranks(record.report) ? "\n" + RankTable(record, options).draw_busy() : "");
  }
  std::string text = costs_line(record) + totals(record.report) + asynchronous(record.report) +
                     busiest_link(record.report) + write_parts_text(record.report) +
                     write_held_text(record.report, record.made.lower.send_budget) +
                     noise_line(record.report) + serving_line(record.report) +
                     job_line(record.report) + write_sensitivity_text(record.report) + "\n" +
                     RankTable(record, options).draw();
  const std::string left_out = describe_shown_ranks(record.report, options.all_ranks);
  if (!left_out.empty()) text += left_out + "\n";
  text += "\n" + write_path_text(record, options.width) + highest_peak(record);
  return options.fit ? fold_lines(text, options.width) : text;
}

}  // namespace bubblescope::traces
