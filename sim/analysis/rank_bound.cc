// Computes the bound over all pairs of a head and a tail, in descending order of heads.
#include "sim/analysis/rank_bound.h"

#include <algorithm>

namespace bubblescope::inline sim {

Nanos bound_of_rank(std::vector<OpClass> classes, Nanos op_gap) {
  std::sort(classes.begin(), classes.end(),
            [](const OpClass& a, const OpClass& b) { return a.head > b.head; });
  Nanos bound = 0;
  for (const OpClass& shortest : classes) {
    Nanos work = 0;
    for (const OpClass& next : classes) {
      if (next.tail < shortest.tail) continue;
      work += next.work;
      bound = std::max(bound, next.head + work - op_gap + shortest.tail);
    }
  }
  return bound;
}

}  // namespace bubblescope::inline sim
