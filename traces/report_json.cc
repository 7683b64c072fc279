// Writing the report key by key: the order of the keys is part of the contract.
#include "traces/report_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <vector>

#include "sim/analysis/conclusions.h"

namespace bubblescope {

namespace {

template <class Enum, std::size_t kCount>
void append_by_name(std::string& out, const std::array<Nanos, kCount>& values) {
  for (std::size_t at = 0; at < kCount; ++at)
    fmt::format_to(std::back_inserter(out), "{}\"{}\":{}", at == 0 ? "{" : ",",
                   name(static_cast<Enum>(at)), values[at]);
  out += '}';
}

/// Per rank, the largest slack of its instructions; empty where the report has none.
std::vector<Nanos> find_max_slack(const BubbleReport& report, const Program& program) {
  if (report.slack.size() != program.instructions.size()) return {};
  std::vector<Nanos> largest(report.ranks.size(), 0);
  for (InstructionId id = 0; id < program.size(); ++id) {
    Nanos& of_rank = largest[static_cast<std::size_t>(program.instructions[id].rank)];
    of_rank = std::max(of_rank, report.slack[id]);
  }
  return largest;
}

void append_peak(std::string& out, const Peak& peak, const Program& program) {
  fmt::format_to(std::back_inserter(out),
                 "\n  \"peak_chunks\":{},\"peak_activations\":{},\"peak_units\":{},", peak.chunks,
                 json_number(peak.activations), json_number(peak.units));
  if (peak.bytes) fmt::format_to(std::back_inserter(out), "\"peak_memory_bytes\":{},", *peak.bytes);
  if (peak.at)
    fmt::format_to(std::back_inserter(out), "\"peak_at\":\"{}\",",
                   to_string(program.instructions[*peak.at].op));
}

void append_ranks(std::string& out, const BubbleReport& report, const Program& program) {
  const std::vector<Nanos> max_slack = find_max_slack(report, program);
  out += " \"ranks\":[";
  for (std::size_t rank = 0; rank < report.ranks.size(); ++rank) {
    const RankReport& row = report.ranks[rank];
    fmt::format_to(std::back_inserter(out),
                   "{}\n {{\"rank\":{},\"busy_ns\":{},\"idle_ns\":{},\"first_start_ns\":{},"
                   "\"last_end_ns\":{},\"sends\":{},",
                   rank == 0 ? "" : ",", rank, row.busy, row.idle, row.first_start, row.last_end,
                   row.sends);
    append_peak(out, row.peak, program);
    out += "\n  \"busy_by_kind_ns\":";
    append_by_name<BusyKind>(out, row.busy_by_kind);
    out += ",\n  \"idle_by_cause_ns\":";
    if (is_conclusive(report))
      append_by_name<IdleCause>(out, row.idle_by_cause);
    else
      out += "null";
    if (row.weights)
      fmt::format_to(std::back_inserter(out),
                     ",\n  \"warmup\":{},\"staleness\":{},\"weight_versions\":{}",
                     row.weights->warmup, row.weights->staleness, row.weights->versions);
    if (row.weights && row.weights->bytes)
      fmt::format_to(std::back_inserter(out), ",\"weight_bytes\":{}", *row.weights->bytes);
    if (!max_slack.empty())
      fmt::format_to(std::back_inserter(out), ",\"max_slack_ns\":{}", max_slack[rank]);
    out += '}';
  }
  out += "],\n";
}

void append_bubble(std::string& out, const BubbleReport& report) {
  if (!is_conclusive(report)) {
    out += " \"bubble\":null,\n";
    return;
  }
  fmt::format_to(std::back_inserter(out),
                 " \"bubble\":{{\"ratio\":{},\"overhead\":{},\"span_rate\":{},\"time_ns\":{}}},\n",
                 json_number(report.bubble.ratio), json_number(report.bubble.overhead),
                 json_number(report.bubble.span_rate), report.bubble.time);
}

void append_critical_path(std::string& out, const BubbleReport& report, const Program& program,
                          const Timeline& timeline) {
  if (!is_conclusive(report)) {
    out += " \"critical_path\":null,\n";
    return;
  }
  out += " \"critical_path\":[";
  const char* separator = "\n";
  for (const InstructionId id : report.critical_path) {
    const Instruction& instruction = program.instructions[id];
    fmt::format_to(std::back_inserter(out),
                   "{} {{\"rank\":{},\"op\":\"{}\",\"start_ns\":{},\"end_ns\":{}}}", separator,
                   instruction.rank, to_string(instruction.op), timeline.start[id],
                   timeline.end[id]);
    separator = ",\n";
  }
  out += "],\n";
}

void append_links(std::string& out, const std::vector<LinkUse>& links) {
  out += " \"links\":[";
  const char* separator = "\n";
  for (const LinkUse& link : links) {
    fmt::format_to(std::back_inserter(out),
                   "{} {{\"name\":{},\"bytes\":{},\"busy_ns\":{},\"shared_ns\":{},"
                   "\"utilization\":{}}}",
                   separator, json_string(link.name), link.bytes, link.busy, link.shared,
                   json_number(link.utilization));
    separator = ",\n";
  }
  out += "],\n";
}

void append_noise(std::string& out, const StepTimes& times) {
  fmt::format_to(std::back_inserter(out),
                 " \"noise\":{{\"seeds\":{},\"p50_ns\":{},\"p95_ns\":{},\"mean_ns\":{},"
                 "\"least_ns\":{},\"most_ns\":{}}},\n",
                 times.makespans.size(), times.p50, times.p95, json_number(times.mean), times.least,
                 times.most);
}

void append_sensitivity(std::string& out, const Sensitivity& sensitivity) {
  fmt::format_to(std::back_inserter(out),
                 " \"sensitivity\":{{\"more\":0.01,\"by_rank_ns\":[{}],\"by_kind_ns\":",
                 fmt::join(sensitivity.by_rank, ","));
  append_by_name<BusyKind>(out, sensitivity.by_kind);
  out += "},\n";
}

}  // namespace

std::string write_report_json(const BubbleReport& report, const Program& program,
                              const Timeline& timeline, const ReportFields& more) {
  std::string out;
  fmt::format_to(std::back_inserter(out),
                 "{{\"format\":\"bubblescope-report/1\",\"source\":{},\"schedule\":{},\"pp\":{},"
                 "\"vpp\":{},\"microbatches\":{},",
                 json_string(report.source), json_string(report.schedule), report.shape.ranks,
                 report.shape.chunks, report.shape.microbatches);
  if (report.shape.slices > 1)
    fmt::format_to(std::back_inserter(out), "\"slices\":{},", report.shape.slices);
  fmt::format_to(std::back_inserter(out),
                 "\n \"makespan_ns\":{},\n \"max_span_ns\":{},\n \"ideal_ns\":{},\n",
                 report.makespan, report.max_span, report.ideal);
  append_bubble(out, report);
  if (report.period)
    fmt::format_to(std::back_inserter(out), " \"period_ns\":{},\n", *report.period);
  append_ranks(out, report, program);
  append_critical_path(out, report, program, timeline);
  if (!report.links.empty()) append_links(out, report.links);
  if (report.noise) append_noise(out, *report.noise);
  if (report.sensitivity) append_sensitivity(out, *report.sensitivity);
  out += " \"lower_bound_ns\":";
  out += is_conclusive(report) ? fmt::format("{}", report.lower_bound) : "null";
  for (const auto& [name, value] : more)
    fmt::format_to(std::back_inserter(out), ",\n {}:{}", json_string(name), value);
  out += "}\n";
  return out;
}

}  // namespace bubblescope
