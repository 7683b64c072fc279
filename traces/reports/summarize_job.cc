// Takes the numbers of a job from its iterations.
#include "traces/reports/summarize_job.h"

#include <iterator>
#include <string>

#include "traces/reports/cause_phrases.h"
#include "traces/reports/cause_text.h"

namespace bubblescope::traces {

JobSummary summarize_job(const Iterations& iterations) {
  JobSummary job;
  job.iterations = std::ssize(iterations.rows);
  job.step = find_known_step(iterations);
  job.replay_error = iterations.trust.replay_error;
  job.verdict = to_string(iterations.trust.verdict);
  job.why = iterations.trust.why;
  job.lacks_replicas = iterations.lacks_replicas;
  if (iterations.causes && iterations.causes->is_known) {
    job.causes.emplace();
    for (const Cause& cause : iterations.causes->causes)
      job.causes->push_back(
          {std::string(cause_code(cause.kind())), phrase_cause(cause).place, cause.saves});
  }
  if (iterations.slowdown) {
    job.slowdown = iterations.slowdown->slowdown;
    job.workers = iterations.slowdown->by_worker;
  }
  return job;
}

}  // namespace bubblescope::traces
