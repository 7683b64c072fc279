// The causes of long steps in words (traces/reports/cause_text.h), for reports and pages.
#pragma once

#include <string>
#include <vector>

#include "sim/ir/units.h"

namespace bubblescope::traces {

/// Each text is one line or several, without indentation and without a final newline.
struct CauseWords {
  std::string what;        ///< "unequal stages: stage 3 (rank 3) has 1.61 x the mean stage's work"
  std::string would_save;  ///< "with the same work in equal stages, the step would be ... shorter"
  std::string caveat;      ///< "(or its rank is slow: ...)"; mostly empty
  Nanos saves = 0;
  double share = 0;  ///< of the mean step
};

struct CausesInWords {
  std::vector<CauseWords> causes;  ///< the largest first
  std::string remark;              ///< on all of them, or on why there are none; may be empty
};

}  // namespace bubblescope::traces
