// The memory of vocabulary parallelism with a model, against peaks that its authors measured.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "sim/model/model_step.h"
#include "sim/model/runtime.h"
#include "sim/model/schedule_def.h"
#include "sim/predict/predict.h"

namespace bubblescope::tests {
namespace {

struct MeasuredPeaks {
  std::int64_t sequence = 0;
  std::int64_t vocabulary = 0;
  double plain = 0;  ///< GiB on the fullest of 8 A100s, under 1F1B
  double first = 0;  ///< under 1F1B with Algorithm 1
  double second = 0;
};

/// The model of 4 billion parameters besides the vocabulary.
ModelOnDevices on_a100(const MeasuredPeaks& measured) {
  ModelOnDevices on;
  on.model.hidden = 3072;
  on.model.heads = on.model.key_value_heads = 24;
  on.model.head_size = 128;
  on.model.layers = 32;
  on.model.feed_forward = 12'288;
  on.model.vocabulary = measured.vocabulary;
  on.model.position_table = on.model.sequence = measured.sequence;
  on.gpu = Registry<GpuDef>::instance().find("a100")->gpu;
  on.parallel.sequence = measured.sequence;
  on.assumptions = Registry<RuntimeDef>::instance().find("megatron")->assumptions;
  return on;
}

/// The tensors of the fullest rank, in GiB. Plain stages have as many layers each, whatever tables
/// they hold. Peaks of PyTorch leave out driver and libraries.
double peak_of(const char* name, const MeasuredPeaks& measured) {
  ScheduleRequest request;
  request.shape.ranks = 8;
  request.shape.microbatches = 128;
  Config config;
  ModelOnDevices on = on_a100(measured);
  if (std::string(name) == "1f1b") on.parallel.embedding_layers = on.parallel.head_layers = 0;
  config.costs = ModelCosts{on};
  Bytes fullest = 0;
  for (const RankReport& rank :
       predict(build_schedule(find_schedule(name), request), config).report.ranks)
    fullest = std::max(fullest, rank.peak.bytes.value_or(0));
  return static_cast<double>(fullest - (Bytes{2} << 30)) / (1 << 30);
}

// Table of sail-sg/VocabularyParallelism, artifact/README.md. Weights, gradients and states of 128k
// words take 6.6 GiB. Under 1F1B rank 0 holds those of the embedding; shards hold an eighth of them
// and of the head.
TEST(VocabularyMemory, IsWhatItsAuthorsMeasured) {
  for (const MeasuredPeaks& measured : {MeasuredPeaks{2048, 64'000, 17.74, 17.48, 16.64},
                                        MeasuredPeaks{2048, 128'000, 21.00, 18.40, 17.56},
                                        MeasuredPeaks{4096, 128'000, 27.22, 26.10, 24.56},
                                        MeasuredPeaks{4096, 256'000, 33.86, 27.38, 26.25}}) {
    SCOPED_TRACE(std::to_string(measured.sequence) + ' ' + std::to_string(measured.vocabulary));
    EXPECT_NEAR(peak_of("1f1b", measured) / measured.plain, 0.96, 0.04);
    EXPECT_NEAR(peak_of("1f1b-vocab", measured) / measured.first, 0.96, 0.04);
    EXPECT_NEAR(peak_of("1f1b-vocab-2", measured) / measured.second, 0.96, 0.04);
  }
}

// Tied words are one table, which each shard holds a part of.
TEST(VocabularyMemory, CountsTiedWordsOnce) {
  const MeasuredPeaks large{2048, 256'000, 0, 0, 0};
  ModelOnDevices on = on_a100(large);
  ScheduleRequest request;
  request.shape.ranks = 8;
  request.shape.microbatches = 8;
  const ValidSchedule schedule = build_schedule(find_schedule("1f1b-vocab"), request);
  const auto states_of_last = [&] {
    return compute_model_step(on, schedule).states.back().total();
  };
  const Bytes apart = states_of_last();
  on.model.tied_embeddings = true;
  const Bytes words = 256'000 / 8 * 3072;
  EXPECT_EQ(apart - states_of_last(), words * 18);
}

}  // namespace
}  // namespace bubblescope::tests
