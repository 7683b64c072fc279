// Tries the classes of a rank as the last ones.
#include "sim/analysis/rank_bound.h"

#include <algorithm>

namespace bubblescope::inline sim {

Nanos bound_of_rank(std::vector<OpClass> classes, Nanos rest) {
  std::sort(classes.begin(), classes.end(),
            [](const OpClass& a, const OpClass& b) { return a.head > b.head; });
  Nanos bound = 0;
  for (const OpClass& shortest : classes) {
    Nanos work = 0;
    for (const OpClass& next : classes) {
      if (next.tail < shortest.tail) continue;
      work += next.work;
      bound = std::max(bound, next.head + work - rest + shortest.tail);
    }
  }
  return bound;
}

}  // namespace bubblescope::inline sim
