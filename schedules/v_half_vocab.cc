// V-Half with vocabulary parallelism, Algorithm 1: the memory of all ranks is balanced, and so is
// the output layer, with two barriers before the first backward.
#include "schedules/v_vocabulary.h"
#include "schedules/vocabulary.h"

namespace bubblescope::schedules {
namespace {

const ScheduleRegistrar v_half_vocab_registrar{[] {
  return ScheduleDef{
      .name = "v-half-vocab",
      .summary = "V-Half, the output layer split over all ranks: two barriers",
      .source = "Yeung et al. 2024 (vocabulary parallelism), Algorithm 1",
      .implied_chunks = 2,
      .reads_costs = true,
      .splits_output_layer = true,
      .refuse = refuse_many_barriers,
      .build =
          [](const ScheduleRequest& request) {
            return build_v_half_vocab(request, VocabAlgorithm::kTwoBarriers);
          },
      .claims = claim_v_half_vocab,
  };
}};

}  // namespace
}  // namespace bubblescope::schedules
