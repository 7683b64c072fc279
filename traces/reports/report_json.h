// The bubble report as JSON, "bubblescope-report/1". docs/glossary.md explains its keys.
//
//   {"format":"bubblescope-report/1","source":"simulated","schedule":"1f1b","pp":2,...,
//    "makespan_ns":9000000,
//    "max_span_ns":9000000,
//    "ideal_ns":6000000,
//    "bubble":{"ratio":0.3333333333333333,"overhead":0.5,"span_rate":0.3333333333333333,...},
//    "ranks":[
//     {"rank":0,"busy_ns":6000000,"idle_ns":3000000,"first_start_ns":0,"last_end_ns":9000000,...,
//      "peak_chunks":2,"peak_activations":2.0,"peak_units":2.0,"peak_at":"0F1",
//      "busy_by_kind_ns":{"F":2000000,...},
//      "idle_by_cause_ns":{"warmup":0,...},"max_slack_ns":2000000},
//     ...],
//    "critical_path":[
//     {"rank":0,"op":"0F0","start_ns":0,"end_ns":1000000},
//     ...],
//    "lower_bound_ns":9000000}
//
// If the report has no conclusions, bubble, idle_by_cause_ns, critical_path and lower_bound_ns are
// null. On the critical path, `by_kind_ns` divides ops of pairs whose parts interleave
// (pair_times.h). `peak_at` is the op at which peak_chunks is first reached. With a send budget,
// `peak_outputs` is the most outputs that a rank holds until their sends end, and
// `peak_output_bytes` the most bytes of them; with an unshard lookahead, `peak_gathered_stages` and
// `peak_gathered_bytes` are the same of gathered weights; `peak_memory_bytes` includes both.
// `max_slack_ns` is the largest slack of the rank's instructions. Schedules without flushes have
// "warmup":3,"staleness":3,"weight_versions":4 per rank, "weight_bytes" of all these versions if
// the cost file gives them, and `period_ns` before lower_bound_ns. If messages share links, these
// come before lower_bound_ns, the most utilized first:
//    "links":[{"name":"nic 0 out","bytes":8388608,"busy_ns":190000,"shared_ns":40000,
//              "utilization":0.21},...]
// With arrivals, with noise, and with sensitivity:
//    "serving":{"time_to_first_token":{"p50_ns":...,"p95_ns":...,"mean_ns":...,"max_ns":...},
//     "time_to_first_token_ns":[...],"microbatches_per_second":...},
//    "noise":{"seeds":1000,"p50_ns":...,"p95_ns":...,"mean_ns":...,"min_ns":...,"max_ns":...},
//    "sensitivity":{"more":0.01,"by_rank_ns":[180000,...],"by_kind_ns":{"F":110000,...}}
#pragma once

#include <string>

#include "sim/analysis/report.h"
#include "sim/ir/program.h"
#include "sim/ir/timeline.h"
#include "traces/json/json_writer.h"

namespace bubblescope::traces {

/// Writes the whole report, which ends with a newline. `write_more` adds a command's members at its
/// end. Takes time linear in ranks and critical path.
std::string write_report_json(const BubbleReport& report, const Program& program,
                              const Timeline& timeline, const WriteMembers& write_more = {});

}  // namespace bubblescope::traces
