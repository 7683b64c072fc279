// Writes what the loss of a rank costs. As text, with the change from the step without a loss:
//
//   rank 1 of one of 3 replicas is lost at 10 ms; 5 ms of its work is repeated
//                                 step   change  peak act
//   without a loss               33 ms                  4
//   this step                    43 ms  +30.3 %         5
//   next steps                   41 ms  +24.2 %         5
//   without the damaged replica  45 ms  +36.4 %         4
//   no order of the next steps is faster than 39 ms
//   without the damaged replica there are 12 micro-batches on each of the others
//
// "peak act" is the most micro-batches that a rank holds. As json:
//   "loss":{"replicas":3,"rank":1,"at_ns":10000000,"detection_ns":0,"lost_work_ns":5000000,
//    "healthy":{"step_ns":...,"peak_activations":4.0},"this_step":{...},"next_steps":{...},
//    "bound_ns":...,"left_microbatches":12,"without_replica":{...}}
// "without_replica" is null where those steps are not timed. "at_ns" is null where the rank is lost
// between two steps; then "lost_work_ns" and "this_step" are absent.
#pragma once

#include <string>

#include "sim/predict/rank_loss.h"
#include "traces/json/json_writer.h"

namespace bubblescope::traces {

std::string write_loss_text(const LossReport& report);

void write_loss_json(JsonWriter& json, const LossReport& report);

}  // namespace bubblescope::traces
