// The file of a timed step, "bubblescope-timeline/1", which is read back as it was written.
//
//   {"format":"bubblescope-timeline/1",
//    "source":"simulated",
//    "schedule":{"format":"bubblescope-schedule/1",...},
//    "lanes":[[0,"compute"],[1,"compute"]],
//    "columns":["rank","op","start_ns","end_ns","lane","peer","waits_for"],
//    "instructions":[
//     [0,"0F0",0,1000000,0,0,[]],
//     [0,"0SEND_F0",1000000,1100000,null,1,[0]],
//     [1,"1F0",1100000,2100000,1,1,[1]],
//     ...]}
//
// One row per instruction, numbered from 0; each row follows everything that it waits for. lanes
// are [rank, name]; lane r is the compute lane of rank r, null means no lane. peer is the receiver
// of a message, else the rank itself. An eighth entry, "post" or "wait", marks the posting of a
// message and the wait for it, which take no time of their own. The file contains the whole
// Program, so it can be analyzed again however it was lowered, simulated or measured. "breakdown",
// after the source of a measured step that did not complete, states the reason and where every rank
// was blocked; instructions that never started are at the last end, with no length. The facts of
// the step follow its instructions: see step_facts_json.h. "job" is what was found in all measured
// steps of which this is the median one: see job_summary_json.h.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sim/ir/timeline.h"
#include "sim/ir/valid_schedule.h"
#include "traces/files/job_summary.h"
#include "traces/files/step_facts.h"

namespace bubblescope::traces {

struct TimelineFile {
  ValidSchedule schedule;
  Program program = {};
  Timeline timeline = {};
  StepFacts facts = {};
  std::optional<JobSummary> job = {};  ///< of all measured steps, where this is their median one
};

std::string write_timeline(const StepRecord& record);

/// The same for a step whose Program and Timeline say all that is known.
std::string write_timeline(const ValidSchedule& schedule, const Program& program,
                           const Timeline& timeline);

/// Throws Error with the JSON pointer of the first fault: a row that ends before it starts, waits
/// for one that is not above it, or runs another op than the schedule has there.
TimelineFile parse_timeline(std::string_view text, const std::string& file);

/// Whether a file looks like this format, from its first bytes.
bool is_timeline(std::string_view text);

}  // namespace bubblescope::traces
