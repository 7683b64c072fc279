// Writes a sentence for each kind of cause.
#include "traces/reports/cause_text.h"

#include <fmt/format.h>

#include <string_view>

#include "traces/text/time_axis.h"
#include "traces/text/wording.h"

namespace bubblescope::traces {

namespace {

constexpr double kMinReported = 0.01;  ///< as a fraction of the step

double share_of(const Cause& cause, Nanos step) { return fraction(cause.saves, step); }

std::string_view code_of(CauseKind kind) {
  switch (kind) {
    case CauseKind::kWorker: return "worker";
    case CauseKind::kStage: return "stage";
    case CauseKind::kSequenceLengths: return "sequence_lengths";
  }
  return "";
}

std::string where(const Cause& cause) {
  switch (cause.kind) {
    case CauseKind::kWorker: return fmt::format("rank {} of replica {}", cause.rank, cause.replica);
    case CauseKind::kStage: return fmt::format("stage {} (rank {})", cause.stage, cause.rank);
    case CauseKind::kSequenceLengths: return "micro-batches";
  }
  return "";
}

std::string describe(const Cause& cause) {
  switch (cause.kind) {
    case CauseKind::kWorker:
      return fmt::format("slow worker: {} takes {:.2f} x what its stage takes elsewhere, in {}",
                         where(cause), cause.factor, counted(cause.steps, "step"));
    case CauseKind::kStage:
      return fmt::format("unequal stages: {} has {:.2f} x the mean stage's work", where(cause),
                         cause.factor);
    case CauseKind::kSequenceLengths:
      return fmt::format(
          "unequal micro-batches: forwards and backwards grow together (correlation {:.2f})",
          cause.factor);
  }
  return "";
}

std::string_view remedy(CauseKind kind) {
  switch (kind) {
    case CauseKind::kWorker: return "as fast as those";
    case CauseKind::kStage: return "with the same work in equal stages";
    case CauseKind::kSequenceLengths: return "with the same work in equal micro-batches";
  }
  return "";
}

}  // namespace

void write_causes_json(JsonWriter& json, const CauseReport& report, Nanos step) {
  if (!report.is_known) {
    json.null();
    return;
  }
  json.begin_array();
  for (const Cause& cause : report.causes) {
    json.line(3).begin_object().member("cause", code_of(cause.kind)).member("where", where(cause));
    json.member("saves_ns", cause.saves).key("share").fixed(share_of(cause, step), 6).end_object();
  }
  json.end_array();
}

std::string write_causes_text(const CauseReport& report, Nanos step, bool has_replicas) {
  if (!report.is_known)
    return "cause:    unknown: the trace does not say how long messages travel\n";
  std::string text;
  for (const Cause& cause : report.causes) {
    if (share_of(cause, step) < kMinReported) continue;
    text +=
        fmt::format("{}{}\n          {}, the step would be {} shorter ({})\n",
                    text.empty() ? "cause:    " : "          ", describe(cause), remedy(cause.kind),
                    format_time(cause.saves), format_percent(share_of(cause, step)));
    if (cause.kind == CauseKind::kStage && !has_replicas)
      text += "          (or its rank is slow: that takes a second replica to tell)\n";
  }
  return text.empty() ? "cause:    none that would save 1 % of the step\n" : text;
}

}  // namespace bubblescope::traces
