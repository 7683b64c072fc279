// The data of the html page: json whose long lists are numbers in base64.
//
//   {"version":"0.1.0","command":"bubblescope simulate ...","kinds":[{"code":"F",...}],
//    "causes":["warmup",...],"busyKinds":["F",...],
//    "steps":[{"label":"1f1b","ranks":[...],"threads":[[0,"compute"],...],
//              "ops":"AAEC...","idle":"...","memory":"..."}],
//    "workers":{...},     the heat map of measured steps
//    "longSteps":{...},   the causes of their length
//    "changes":[...]}     from one run of a job to another
//
// traces/drawings/html/00_decode.js reads the lists, in the same order and with the same
// predictions.
#pragma once

#include "traces/files/file.h"
#include "traces/files/format.h"

namespace bubblescope::traces {

/// Streams the json. It contains no '<', so it can be embedded in a page unchanged.
void write_html_data(const ReportSet& report_set, const Sink& sink);

}  // namespace bubblescope::traces
