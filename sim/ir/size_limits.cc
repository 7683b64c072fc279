// Counts the stages and ops of a shape.
#include "sim/ir/size_limits.h"

#include <fmt/format.h>

#include "sim/ir/counted.h"
#include "sim/ir/error.h"

namespace bubblescope::inline sim {

void expect_size(const Shape& shape, std::int64_t max_ops) {
  const std::int64_t stages = std::int64_t{shape.ranks} * shape.chunks;
  if (stages > kMaxBuiltStages)
    throw Error(fmt::format("this shape has {}, the limit is {}; ask for fewer ranks or chunks",
                            counted(stages, "stage"), kMaxBuiltStages));
  const std::int64_t ops = 2 * stages * shape.microbatches * shape.slices;
  if (ops > max_ops)
    throw Error(fmt::format(
        "this shape has at least {}, the limit is {}; ask for fewer micro-batches, ranks or chunks",
        counted(ops, "op"), max_ops));
}

}  // namespace bubblescope::inline sim
