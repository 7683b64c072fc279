// V-Half with vocabulary parallelism, Algorithm 2: the memory of all ranks is balanced, and so is
// the output layer, with one barrier before the first backward.
#include "schedules/v_vocabulary.h"

namespace bubblescope::schedules {
namespace {

const ScheduleRegistrar v_half_vocab_2_registrar{[] {
  return define_v_half_vocab(
      {.name = "v-half-vocab-2",
       .summary = "V-Half, the output layer split over all ranks: one barrier",
       .source = "Yeung et al. 2024 (vocabulary parallelism), Algorithm 2"},
      VocabAlgorithm::kOneBarrier);
}};

}  // namespace
}  // namespace bubblescope::schedules
