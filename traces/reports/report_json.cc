// Writes the report key by key: the order of the keys is part of the contract.
#include "traces/reports/report_json.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "sim/analysis/conclusions.h"
#include "sim/analysis/idle.h"
#include "sim/analysis/pair_times.h"
#include "traces/json/link_uses.h"

namespace bubblescope::traces {

namespace {

void write_by_kind(JsonWriter& json, const std::array<Nanos, kBusyKinds>& times) {
  json.begin_object();
  for (std::size_t kind = 0; kind < times.size(); ++kind)
    json.member(name(static_cast<BusyKind>(kind)), times[kind]);
  json.end_object();
}

void write_idle(JsonWriter& json, const RankReport& row, const std::vector<IdleCause>& causes) {
  json.begin_object();
  for (const IdleCause cause : causes)
    json.member(name(cause), row.idle_by_cause[static_cast<std::size_t>(cause)]);
  json.end_object();
}

/// The largest slack of each rank's instructions; empty if the report has no slack.
std::vector<Nanos> find_max_slack(const BubbleReport& report, const Program& program) {
  if (report.slack.size() != program.instructions.size()) return {};
  std::vector<Nanos> largest(report.ranks.size(), 0);
  for (InstructionId id = 0; id < program.size(); ++id) {
    Nanos& of_rank = largest[static_cast<std::size_t>(program.instructions[id].rank)];
    of_rank = std::max(of_rank, report.slack[id]);
  }
  return largest;
}

void write_peak(JsonWriter& json, const Peak& peak, const Program& program) {
  json.line(2)
      .key("peak_chunks")
      .shortest(peak.chunks)
      .member("peak_activations", peak.activations);
  json.member("peak_units", peak.units);
  if (peak.bytes) json.member("peak_memory_bytes", *peak.bytes);
  if (peak.at) json.member("peak_at", to_string(program.instructions[*peak.at].op));
  if (peak.outputs) {
    json.member("peak_outputs", peak.outputs->count);
    if (peak.outputs->bytes) json.member("peak_output_bytes", *peak.outputs->bytes);
  }
  if (peak.gathered) {
    json.member("peak_gathered_stages", peak.gathered->count);
    if (peak.gathered->bytes) json.member("peak_gathered_bytes", *peak.gathered->bytes);
  }
}

void write_weights(JsonWriter& json, const WeightReport& weights) {
  json.line(2).member("warmup", weights.warmup).member("staleness", weights.staleness);
  json.member("weight_versions", weights.versions);
  if (weights.bytes) json.member("weight_bytes", *weights.bytes);
}

/// A rank without a trace has the same members.
void write_missing_rank(JsonWriter& json, std::size_t rank) {
  json.line(1).begin_object().member("rank", rank).member("recorded", false);
  for (const char* const key :
       {"busy_ns", "idle_ns", "first_start_ns", "last_end_ns", "sends", "peak_chunks",
        "peak_activations", "peak_units", "busy_by_kind_ns", "idle_by_cause_ns"})
    json.key(key).null();
  json.end_object();
}

void write_ranks(JsonWriter& json, const BubbleReport& report, const Program& program) {
  const std::vector<Nanos> max_slack = find_max_slack(report, program);
  const std::vector<IdleCause> causes = choose_idle_causes(report);
  json.line(1).key("ranks").begin_array();
  for (std::size_t rank = 0; rank < report.ranks.size(); ++rank) {
    const RankReport& row = report.ranks[rank];
    if (!row.is_recorded) {
      write_missing_rank(json, rank);
      continue;
    }
    json.line(1).begin_object().member("rank", rank).member("busy_ns", row.busy);
    json.member("idle_ns", row.idle).member("first_start_ns", row.first_start);
    json.member("last_end_ns", row.last_end).member("sends", row.sends);
    write_peak(json, row.peak, program);
    write_by_kind(json.line(2).key("busy_by_kind_ns"), row.busy_by_kind);
    json.line(2).key("idle_by_cause_ns");
    if (is_conclusive(report))
      write_idle(json, row, causes);
    else
      json.null();
    if (row.weights) write_weights(json, *row.weights);
    if (!max_slack.empty()) json.member("max_slack_ns", max_slack[rank]);
    json.end_object();
  }
  json.end_array();
}

void write_shares(JsonWriter& json, const std::array<KindTime, 2>& shares) {
  json.key("by_kind_ns").begin_object();
  for (const KindTime& share : shares) json.member(code(share.kind), share.time);
  json.end_object();
}

void write_critical_path(JsonWriter& json, const BubbleReport& report, const Program& program,
                         const Timeline& timeline) {
  json.line(1).key("critical_path");
  if (!is_conclusive(report)) {
    json.null();
    return;
  }
  std::optional<PairTimes> pairs;
  if (report.parts) pairs.emplace(program, timeline, *report.parts);
  json.begin_array();
  for (const InstructionId id : report.critical_path) {
    const Instruction& instruction = program.instructions[id];
    json.line(1).begin_object().member("rank", instruction.rank);
    json.member("op", to_string(instruction.op)).member("start_ns", timeline.start[id]);
    json.member("end_ns", timeline.end[id]);
    if (pairs && pairs->covers(id)) write_shares(json, pairs->divide(id));
    json.end_object();
  }
  json.end_array();
}

void write_noise(JsonWriter& json, const StepTimes& times) {
  json.line(1).key("noise").begin_object().member("seeds", times.makespans.size());
  json.member("p50_ns", times.p50).member("p95_ns", times.p95).member("mean_ns", times.mean);
  json.member("min_ns", times.shortest).member("max_ns", times.longest);
  json.member("p5_ns", times.p5);
  json.member("least_ns", times.shortest).member("most_ns", times.longest);  // the old names
  json.end_object();
}

void write_serving(JsonWriter& json, const ServingReport& serving) {
  json.line(1).key("serving").begin_object().key("time_to_first_token").begin_object();
  json.member("p50_ns", serving.first_token_p50).member("p95_ns", serving.first_token_p95);
  json.member("mean_ns", serving.first_token_mean).member("max_ns", serving.first_token_max);
  json.end_object().array("time_to_first_token_ns", serving.first_token);
  json.member("microbatches_per_second", serving.microbatches_per_second).end_object();
}

void write_parts(JsonWriter& json, const PartsReport& report) {
  json.line(1).key("parts").begin_array();
  for (const PartReport& part : report.parts) {
    json.line(1).begin_object().member("part", part.name);
    json.member("lane", kPartLanes[part.lane].name).array("exposed_ns", part.exposed);
    json.array("slowed_ns", part.slowed).end_object();
  }
  json.end_array();
}

void write_sensitivity(JsonWriter& json, const Sensitivity& sensitivity) {
  json.line(1).key("sensitivity").begin_object().member("more", 0.01);
  json.array("by_rank_ns", sensitivity.by_rank).key("by_kind_ns");
  write_by_kind(json, sensitivity.by_kind);
  json.end_object();
}

void write_bubble(JsonWriter& json, const BubbleReport& report) {
  json.line(1).key("bubble");
  if (!is_conclusive(report)) {
    json.null();
    return;
  }
  json.begin_object().member("ratio", report.bubble->ratio);
  json.member("overhead", report.bubble->overhead).member("span_rate", report.bubble->span_rate);
  json.member("time_ns", report.bubble->time).end_object();
}

}  // namespace

std::string write_report_json(const BubbleReport& report, const Program& program,
                              const Timeline& timeline, const WriteMembers& write_more) {
  std::string out;
  JsonWriter json(out);
  json.begin_object().member("format", "bubblescope-report/1").member("source", report.source);
  json.member("schedule", report.schedule).member("pp", report.shape.ranks);
  json.member("vpp", report.shape.chunks).member("microbatches", report.shape.microbatches);
  if (report.shape.slices > 1) json.member("slices", report.shape.slices);
  json.line(1).member("makespan_ns", report.makespan);
  json.line(1).member("max_span_ns", report.max_span).line(1).member("ideal_ns", report.ideal);
  write_bubble(json, report);
  if (report.period) json.line(1).member("period_ns", *report.period);
  write_ranks(json, report, program);
  write_critical_path(json, report, program, timeline);
  if (!report.links.empty()) write_links(json.line(1).key("links"), report.links, 1);
  if (report.parts) write_parts(json, *report.parts);
  if (report.noise) write_noise(json, *report.noise);
  if (report.serving) write_serving(json, *report.serving);
  if (report.job) {
    json.line(1).member("step_ns", report.job->step).member("replicas", report.job->replicas);
    json.member("outside_pipeline_ns", report.job->outside_pipeline);
  }
  if (report.sensitivity) write_sensitivity(json, *report.sensitivity);
  json.line(1).key("lower_bound_ns");
  is_conclusive(report) ? json.value(report.lower_bound) : json.null();
  if (write_more) write_more(json);
  json.end_object();
  return out + '\n';
}

}  // namespace bubblescope::traces
