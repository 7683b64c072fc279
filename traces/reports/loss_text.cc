// Writes the table of a loss.
#include "traces/reports/loss_text.h"

#include <fmt/format.h>

#include "sim/ir/counted.h"
#include "traces/text/fit_table.h"

namespace bubblescope::traces {

namespace {

/// The columns of the table, row by row.
class LossTable {
 public:
  explicit LossTable(const StepCost& healthy) : healthy_(healthy) {
    name_.left = true;
    add("without a loss", healthy);
    change_.cells.back().clear();
  }

  void add(const std::string& name, const StepCost& cost) {
    name_.cells.push_back(name);
    step_.cells.push_back(fmt::format("{:.6g} ms", static_cast<double>(cost.step) / 1e6));
    const double change = fraction(cost.step - healthy_.step, healthy_.step);
    change_.cells.push_back(fmt::format("{:+.3g} %", 100 * change));
    peak_.cells.push_back(fmt::format("{:.4g}", cost.peak));
  }

  std::string draw() const { return draw_table({name_, step_, change_, peak_}).text; }

 private:
  const StepCost& healthy_;
  TableColumn name_;
  TableColumn step_{"step", {}};
  TableColumn change_{"change", {}};
  TableColumn peak_{"peak act", {}};
};

std::string describe_loss(const LossReport& report) {
  const auto& [lost, at, detection] = report.loss;
  std::string text =
      fmt::format("rank {} of one of {} is lost", lost.rank, counted(lost.replicas, "replica"));
  if (!report.interrupted) return text + " between two steps\n";
  text += fmt::format(" at {}", to_text(*at));
  if (detection > 0) text += fmt::format(", which is known {} later", to_text(detection));
  return text +
         fmt::format("; {} of its work is repeated\n", to_text(report.interrupted->lost_work));
}

void write_cost(JsonWriter& json, std::string_view name, const StepCost& cost) {
  json.key(name).begin_object().member("step_ns", cost.step);
  json.member("peak_activations", cost.peak).end_object();
}

}  // namespace

std::string write_loss_text(const LossReport& report) {
  LossTable table(report.healthy);
  if (report.interrupted) table.add("this step", report.interrupted->cost);
  table.add("next steps", report.rerouted);
  if (report.without_replica) table.add("without the damaged replica", *report.without_replica);
  std::string text = describe_loss(report) + table.draw();
  text += fmt::format("no order of the next steps is faster than {}\n", to_text(report.bound));
  const std::string left =
      fmt::format("{} on each of the others", counted(report.left_microbatches, "micro-batch"));
  if (report.without_replica)
    return text + fmt::format("without the damaged replica there are {}\n", left);
  const std::string reason = report.left_refusal.empty() ? "" : ": " + report.left_refusal;
  return text +
         fmt::format("without the damaged replica there would be {}; not timed{}\n", left, reason);
}

void write_loss_json(JsonWriter& json, const LossReport& report) {
  const auto& [lost, at, detection] = report.loss;
  json.key("loss").begin_object().member("replicas", lost.replicas).member("rank", lost.rank);
  json.member_or_null("at_ns", at).member("detection_ns", detection);
  if (report.interrupted) json.member("lost_work_ns", report.interrupted->lost_work);
  write_cost(json.line(2), "healthy", report.healthy);
  if (report.interrupted) write_cost(json.line(2), "this_step", report.interrupted->cost);
  write_cost(json.line(2), "next_steps", report.rerouted);
  json.line(2).member("bound_ns", report.bound);
  json.line(2).member("left_microbatches", report.left_microbatches);
  if (report.without_replica)
    write_cost(json.line(2), "without_replica", *report.without_replica);
  else
    json.line(2).key("without_replica").null();
  json.end_object();
}

}  // namespace bubblescope::traces
