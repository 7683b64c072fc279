// The findings on all steps of a job, as members of a json object: of "job" in the file of its
// median step, and of the report of `analyze`, which has others beside them.
//
//   "iterations":16,"step_ns":408800000,
//   "causes":[{"cause":"worker","where":"rank 2 of replica 1","saves_ns":37030000},...],
//   "slowdown":{"S":1.086,"by_worker":[{"replica":0,"rank":0,"S":1.002},...]},
//   "lacks_replicas":false,
//   "trust":{"replay_error":0.0021,"verdict":"good","why":[]}
// "causes" and "slowdown" are null where they are not known.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "traces/files/job_summary.h"
#include "traces/json/json_node.h"
#include "traces/json/json_writer.h"

namespace bubblescope::traces {

/// Writes the object.
void write_job_summary(JsonWriter& json, const JobSummary& job);

/// Reads it. Throws Error with the JSON pointer of the first fault.
JobSummary read_job_summary(const JsonNode& node);

/// Reads it from a report of measured steps; empty for any other json.
std::optional<JobSummary> parse_job_summary(std::string_view report, const std::string& file);

}  // namespace bubblescope::traces
