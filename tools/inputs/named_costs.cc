// Refuses a timeline whose times would be dropped.
#include "tools/inputs/named_costs.h"

#include <fmt/format.h>

#include "sim/ir/error.h"

namespace bubblescope::tools {

void expect_named_costs(const std::string& timeline_path, const PredictOptions& options) {
  const CostOptions& cost = options.cost;
  if (cost.any_uniform || !cost.file.empty() || options.model.given()) return;
  throw Error(fmt::format(
      "{0} is a timeline: its ops have times of their own, which would be replaced by 1 ms per op "
      "here; 'bubblescope analyze {0}' reports on them as they are, and for its order with other "
      "times add --f, --i and --w, --costs FILE or --model",
      timeline_path));
}

}  // namespace bubblescope::tools
