// Applies the release rules.
#include "sim/model/memory_model.h"

namespace bubblescope::inline sim {

MemoryDelta chunk_millionths(Release release) {
  switch (release) {
    case Release::kWeightGrad: return {kWhole, 0, -kWhole};
    case Release::kInputGrad: return {kWhole, -kWhole, 0};
    case Release::kHalf: return {kWhole, -kWhole / 2, -kWhole / 2};
  }
  return {};
}

}  // namespace bubblescope::inline sim
