// The release rules.
#include "sim/model/memory_model.h"

namespace bubblescope {

MemoryDelta half_chunks(Release release) {
  switch (release) {
    case Release::kWeightGrad: return {2, 0, -2};
    case Release::kInputGrad: return {2, -2, 0};
    case Release::kHalf: return {2, -1, -1};
  }
  return {};
}

}  // namespace bubblescope
