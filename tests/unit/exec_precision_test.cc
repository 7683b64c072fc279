// bfloat16: its rounding, and the tolerance of a training that stores it.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "exec/training/precision.h"
#include "exec/training/verification.h"
#include "tests/support/verified_training.h"

namespace bubblescope::tests {
namespace {

TEST(Precision, Bfloat16IsTheNearestWithTiesToEven) {
  // There are 8 bits of mantissa including the leading one, so numbers from 1 to 2 are 1/128 apart.
  const float apart = 1.0F / 128;
  EXPECT_EQ(exec::stored(1 + 0.4F * apart, exec::Precision::kBfloat16), 1);
  EXPECT_EQ(exec::stored(1 + 0.6F * apart, exec::Precision::kBfloat16), 1 + apart);
  EXPECT_EQ(exec::stored(1 + 0.5F * apart, exec::Precision::kBfloat16), 1);
  EXPECT_EQ(exec::stored(1 + 1.5F * apart, exec::Precision::kBfloat16), 1 + 2 * apart);
  EXPECT_EQ(exec::stored(-3.0F, exec::Precision::kBfloat16), -3);
  EXPECT_TRUE(std::isnan(
      exec::stored(std::numeric_limits<float>::quiet_NaN(), exec::Precision::kBfloat16)));
  const float infinite = std::numeric_limits<float>::infinity();
  EXPECT_EQ(exec::stored(infinite, exec::Precision::kBfloat16), infinite);
  EXPECT_EQ(exec::stored(std::numeric_limits<float>::max(), exec::Precision::kBfloat16), infinite);
  EXPECT_EQ(exec::stored(1 + 0.6F * apart, exec::Precision::kFloat32), 1 + 0.6F * apart);
}

exec::TrainingOptions small_bfloat16() {
  exec::TrainingOptions options = small_model();
  options.model.precision = exec::Precision::kBfloat16;
  return options;
}

Schedule four_microbatches() {
  ScheduleRequest request;
  request.shape.ranks = 2;
  request.shape.microbatches = 4;
  return build_schedule(find_schedule("1f1b"), request);
}

TEST(Precision, APipelineInBfloat16TrainsAsOneRankDoes) {
  const Schedule schedule = four_microbatches();
  EXPECT_TRUE(train(schedule, lowered(schedule), small_bfloat16()).exact);
}

TEST(Precision, TrainingInBfloat16DiffersFromFloat32ByItsRounding) {
  const exec::TrainingResult rounded =
      exec::train_serially(four_microbatches(), small_bfloat16(), 1);
  const exec::TrainingResult exact = exec::train_serially(four_microbatches(), small_model(), 1);
  const exec::Verification verification =
      exec::verify(rounded, exact);  // within the tolerance of float32
  EXPECT_FALSE(verification.matches);
  EXPECT_LT(verification.worst, 0.1);  // several roundings of one part in 256
}

TEST(Precision, ALostGradientIsNoRounding) {
  const exec::TrainingResult whole = exec::train_serially(four_microbatches(), small_bfloat16(), 1);
  EXPECT_TRUE(exec::verify(whole, whole).exact);
  // The gains have few entries, which weigh little among all entries of a stage, so they are
  // checked separately.
  for (std::size_t at = 0; at < whole.gradients[0].size(); ++at) {
    exec::TrainingResult lost = whole;
    for (float& value : lost.gradients[0][at].values) value *= 0.75F;  // one of four micro-batches
    const exec::Verification verification = exec::verify(lost, whole);
    EXPECT_FALSE(verification.matches) << whole.stages[0].names[at];
    EXPECT_NE(verification.where.find("stage 0"), std::string::npos) << verification.where;
  }
}

TEST(Precision, AnUpdateThatIsLostOrHalvedIsNoRounding) {
  const exec::TrainingResult whole = exec::train_serially(four_microbatches(), small_bfloat16(), 3);
  const exec::TrainingResult before =
      exec::train_serially(four_microbatches(), small_bfloat16(), 2);
  // Each update makes roughly a third of the change by three: 0.33 and 0.17 are over 0.1.
  for (const float share : {0.0F, 0.5F}) {
    exec::TrainingResult lost = whole;
    for (std::size_t at = 0; at < lost.stages[0].weights.size(); ++at) {
      const std::vector<float>& old = before.stages[0].weights[at].values;
      std::vector<float>& weight = lost.stages[0].weights[at].values;
      for (std::size_t entry = 0; entry < weight.size(); ++entry)
        weight[entry] = old[entry] + share * (weight[entry] - old[entry]);
    }
    const exec::Verification verification = exec::verify(lost, whole);
    EXPECT_FALSE(verification.matches) << verification.worst;
    EXPECT_EQ(verification.where, "total weight change, stage 0");
  }
}

TEST(Precision, WhatIsNoNumberNeverMatches) {
  exec::TrainingResult whole = exec::train_serially(four_microbatches(), small_bfloat16(), 1);
  exec::TrainingResult broken = whole;
  broken.gradients[0][2].values[0] = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(exec::verify(broken, whole).matches);
  EXPECT_FALSE(exec::verify(whole, broken).matches);
  broken.gradients[0][2].values[0] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(exec::verify(broken, whole).matches);
}

TEST(Precision, ASmallNoiseEverywhereIsARounding) {
  const exec::TrainingResult whole = exec::train_serially(four_microbatches(), small_bfloat16(), 1);
  for (const float noise : {0.01F, 0.03F}) {
    exec::TrainingResult noisy = whole;
    float sign = noise;
    for (exec::Matrix& gradient : noisy.gradients[1])
      for (float& value : gradient.values) value *= 1 + (sign = -sign);
    // Relative to a stage's gradients, the root mean square is the noise.
    const exec::Verification verification = exec::verify(noisy, whole);
    EXPECT_EQ(verification.matches, noise < 0.02F);
    EXPECT_NEAR(verification.worst, noise, 1e-6);
  }
}

}  // namespace
}  // namespace bubblescope::tests
