// How reports speak of each sort of cause (sim/analysis/cause_facts.h).
#pragma once

#include <string>

#include "sim/analysis/cause.h"

namespace bubblescope::traces {

struct CausePhrases {
  std::string place;        ///< "stage 3 (rank 3)"
  std::string name;         ///< "unequal stages (stage 3)": for a table
  std::string description;  ///< "unequal stages: stage 3 (rank 3) has 1.61 x the mean stage's work"
  /// Completes "the step would be 298 ms shorter": "with the same work in equal stages".
  std::string remedy;
};

CausePhrases phrase_cause(const Cause& cause);

}  // namespace bubblescope::traces
