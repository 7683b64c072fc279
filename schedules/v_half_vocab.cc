// V-Half with vocabulary parallelism, Algorithm 1: the memory of all ranks is balanced, and so is
// the output layer, with two barriers before the first backward.
#include "schedules/v_vocabulary.h"

namespace bubblescope::schedules {
namespace {

const ScheduleRegistrar v_half_vocab_registrar{[] {
  return define_v_half_vocab(
      {.name = "v-half-vocab",
       .summary = "V-Half, the output layer split over all ranks: two barriers",
       .source = "Yeung et al. 2024 (vocabulary parallelism), Algorithm 1"},
      VocabAlgorithm::kTwoBarriers);
}};

}  // namespace
}  // namespace bubblescope::schedules
