// Sums up what was found in the measured steps of a job, for the file of its median step.
#pragma once

#include "traces/files/job_summary.h"
#include "traces/reports/iterations.h"

namespace bubblescope::traces {

JobSummary summarize_job(const Iterations& iterations);

}  // namespace bubblescope::traces
