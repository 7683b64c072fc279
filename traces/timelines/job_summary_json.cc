// Writes and reads what was found in all steps of a job.
#include "traces/timelines/job_summary_json.h"

#include <limits>

#include "sim/ir/range.h"

namespace bubblescope::traces {

namespace {

constexpr std::int64_t kMaxCount = std::numeric_limits<std::int32_t>::max();

double read_ratio(const JsonNode& node) {
  const std::optional<double> number = node.number();
  if (!number || *number < 0 || *number > static_cast<double>(kMaxNanos))
    node.refuse("must be a ratio, 0 or more");
  return *number;
}

std::vector<SavedCause> read_causes(const JsonNode& node) {
  std::vector<SavedCause> causes;
  for (std::size_t at = 0; at < node.size(); ++at) {
    const JsonNode cause = node[at];
    causes.push_back({cause.at("cause").text(), cause.at("where").text(),
                      cause.at("saves_ns").integer(0, kMaxNanos)});
  }
  return causes;
}

std::vector<WorkerSlowdown> read_workers(const JsonNode& node) {
  std::vector<WorkerSlowdown> workers;
  for (std::size_t at = 0; at < node.size(); ++at) {
    const JsonNode worker = node[at];
    workers.push_back({worker.at("replica").integer32(0, kMaxCount),
                       worker.at("rank").integer32(0, kMaxCount), read_ratio(worker.at("S"))});
  }
  return workers;
}

/// The member, if it is there and not null.
std::optional<JsonNode> find_known(const JsonNode& node, const char* key) {
  std::optional<JsonNode> member = node.find(key);
  if (member && member->is_null()) return {};
  return member;
}

}  // namespace

void write_job_summary(JsonWriter& json, const JobSummary& job) {
  json.begin_object().member("iterations", job.iterations).member_or_null("step_ns", job.step);
  json.line(2).key("causes");
  if (job.causes) {
    json.begin_array();
    for (const SavedCause& cause : *job.causes) {
      json.line(3).begin_object().member("cause", cause.cause).member("where", cause.where);
      json.member("saves_ns", cause.saves).end_object();
    }
    json.end_array();
  } else {
    json.null();
  }
  json.line(2).key("slowdown");
  if (job.slowdown) {
    json.begin_object().key("S").fixed(*job.slowdown, 6).key("by_worker").begin_array();
    for (const WorkerSlowdown& worker : job.workers) {
      json.line(3).begin_object().member("replica", worker.replica).member("rank", worker.rank);
      json.key("S").fixed(worker.slowdown, 6).end_object();
    }
    json.end_array().end_object();
  } else {
    json.null();
  }
  json.line(2).member("lacks_replicas", job.lacks_replicas).key("trust").begin_object();
  json.key("replay_error").shortest(job.replay_error).member("verdict", job.verdict);
  json.array("why", job.why).end_object().end_object();
}

JobSummary read_job_summary(const JsonNode& node) {
  JobSummary job;
  job.iterations = node.at("iterations").integer(1, kMaxCount);
  if (const JsonNode step = node.at("step_ns"); !step.is_null())
    job.step = step.integer(0, kMaxNanos);
  if (const auto causes = find_known(node, "causes")) job.causes = read_causes(*causes);
  if (const auto slowdown = find_known(node, "slowdown")) {
    job.slowdown = read_ratio(slowdown->at("S"));
    job.workers = read_workers(slowdown->at("by_worker"));
  }
  if (const auto lacks = node.find("lacks_replicas")) job.lacks_replicas = lacks->boolean();
  const JsonNode trust = node.at("trust");
  job.replay_error = read_ratio(trust.at("replay_error"));
  job.verdict = trust.at("verdict").text();
  const JsonNode why = trust.at("why");
  for (std::size_t at = 0; at < why.size(); ++at) job.why.push_back(why[at].text());
  return job;
}

std::optional<JobSummary> parse_job_summary(std::string_view report, const std::string& file) {
  const JsonFile json(report, file);
  const JsonNode root = json.root();
  if (!root.is_object() || !root.find("iterations") || !root.find("trust")) return {};
  return read_job_summary(root);
}

}  // namespace bubblescope::traces
