// Writes what was trained, for other programs to reproduce: "bubblescope-training/1".
//
//   {"format":"bubblescope-training/1",
//    "model":{"blocks_per_stage":1,"width":32,"heads":2,"vocabulary":61,"sequence":16,"batch":1},
//    "optimizer":{"kind":"sgd","learning_rate":0.1},
//    "microbatches":8,
//    "stages":[{"weights":[{"name":"embedding","rows":61,"columns":32,"before":[...],"after":[...]},
//               ...]},...],
//    "data":[[{"inputs":[...],"targets":[...]},...],...],       per step, per micro-batch
//    "losses":[4.2,4.1]}                                        per step
#pragma once

#include <string>

#include "exec/training/training.h"

namespace bubblescope::tools {

/// The steps are those of the result, including warm-up. Numbers are exact.
std::string write_training(const exec::TrainingOptions& options, const Schedule& schedule,
                           const exec::TrainingResult& result);

}  // namespace bubblescope::tools
