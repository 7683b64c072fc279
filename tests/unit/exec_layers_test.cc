// Compares the gradients of every layer with finite differences.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "exec/training/layers.h"
#include "exec/training/optimizer.h"
#include "exec/training/training.h"
#include "exec/training/transformer.h"

namespace bubblescope::tests {
namespace {

exec::Matrix random_matrix(std::int32_t rows, std::int32_t columns, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  exec::Matrix matrix(rows, columns);
  for (float& value : matrix.values) value = uniform(random);
  return matrix;
}

double dot(const exec::Matrix& left, const exec::Matrix& right) {
  double sum = 0;
  for (std::size_t at = 0; at < left.values.size(); ++at)
    sum += double{left.values[at]} * double{right.values[at]};
  return sum;
}

exec::Matrix moved(const exec::Matrix& from, const exec::Matrix& along, float distance) {
  exec::Matrix result = from;
  for (std::size_t at = 0; at < result.values.size(); ++at)
    result.values[at] += distance * along.values[at];
  return result;
}

void expect_near(const exec::Matrix& left, const exec::Matrix& right) {
  ASSERT_EQ(left.values.size(), right.values.size());
  for (std::size_t at = 0; at < left.values.size(); ++at)
    EXPECT_NEAR(left.values[at], right.values[at], 1e-5) << at;
}

/// Compares d/dt f(x + t along), by a central difference, with gradient . along.
void expect_gradient(const std::function<double(const exec::Matrix&)>& function,
                     const exec::Matrix& at, const exec::Matrix& gradient) {
  constexpr float kStep = 2e-3F;
  for (unsigned seed = 1; seed <= 5; ++seed) {
    const exec::Matrix along = random_matrix(at.rows, at.columns, 100 + seed);
    const double slope =
        (function(moved(at, along, kStep)) - function(moved(at, along, -kStep))) / (2 * kStep);
    const double expected = dot(gradient, along);
    EXPECT_NEAR(slope, expected, 2e-3 * (1 + std::abs(expected))) << "seed " << seed;
  }
}

TEST(Matrix, ProductsOfTurnedPartsAreThoseOfTheDefinition) {
  const exec::Matrix left = random_matrix(7, 9, 1);
  const exec::Matrix right = random_matrix(8, 7, 2);
  // 2 * left[1..4, 2..6]^T (5x4) * right[3..6, 0..3]^T, 4x4 transposed: (5x4)(4x4)
  const exec::Operand a = exec::transposed(exec::part(left, {1, 4, 2, 5}));
  const exec::Operand b = exec::transposed(exec::part(right, {3, 4, 0, 4}));
  exec::Matrix target = random_matrix(6, 6, 3);
  const exec::Matrix before = target;
  exec::multiply(a, b, exec::onto(target, {1, 5, 1, 4}), {2, true});
  for (std::int32_t row = 0; row < 6; ++row)
    for (std::int32_t column = 0; column < 6; ++column) {
      double expected = double{before.row(row)[column]};
      if (row >= 1 && column >= 1 && column <= 4)
        for (std::int32_t k = 0; k < 4; ++k)
          expected +=
              2.0 * double{left.row(1 + k)[2 + row - 1]} * double{right.row(3 + column - 1)[k]};
      EXPECT_NEAR(double{target.row(row)[column]}, expected, 1e-5);
    }
}

TEST(Layers, NormGradient) {
  const exec::Matrix input = random_matrix(3, 8, 1);
  const exec::Matrix gain = random_matrix(1, 8, 2);
  const exec::Matrix weight = random_matrix(3, 8, 3);
  expect_gradient(
      [&](const exec::Matrix& x) {
        return dot(exec::apply_gain(exec::normalize(x), gain), weight);
      },
      input, exec::norm_grad(input, gain, weight));
}

TEST(Layers, GeluGradient) {
  const exec::Matrix input = random_matrix(4, 5, 1);
  const exec::Matrix weight = random_matrix(4, 5, 2);
  expect_gradient([&](const exec::Matrix& x) { return dot(exec::gelu(x), weight); }, input,
                  exec::gelu_grad(input, weight));
}

TEST(Layers, AttentionGradient) {
  const exec::AttentionShape shape{2, 5, 2, 3};
  const exec::Matrix qkv = random_matrix(10, 18, 1);
  const exec::Matrix weight = random_matrix(10, 6, 2);
  const auto mix = [&](const exec::Matrix& x) {
    return dot(exec::mix_values(x, exec::attention_weights(x, shape), shape), weight);
  };
  expect_gradient(mix, qkv,
                  exec::attention_grad(qkv, exec::attention_weights(qkv, shape), weight, shape));
}

/// The sum over two slices, each of which mixes the rows of its own positions, is the whole.
TEST(Layers, AttentionOfSlicesAddsUpToTheWhole) {
  const exec::AttentionShape whole{2, 5, 2, 3};
  const exec::Matrix qkv = random_matrix(10, 18, 1);
  const exec::Matrix weight = random_matrix(10, 6, 2);
  const exec::Matrix mixed = exec::mix_values(qkv, exec::attention_weights(qkv, whole), whole);
  exec::Matrix grad(10, 18);
  for (const exec::Positions positions : {exec::Positions{3, 2}, exec::Positions{0, 3}}) {
    exec::AttentionShape shape = whole;
    shape.queries = positions;
    const exec::Matrix weights = exec::attention_weights(qkv, shape);
    expect_near(exec::mix_values(qkv, weights, shape), exec::take_rows(mixed, 5, positions));
    exec::add(grad,
              exec::attention_grad(qkv, weights, exec::take_rows(weight, 5, positions), shape));
  }
  expect_near(grad, exec::attention_grad(qkv, exec::attention_weights(qkv, whole), weight, whole));
}

TEST(Layers, AttentionSeesNoLaterPosition) {
  const exec::AttentionShape shape{1, 6, 1, 4};
  exec::Matrix qkv = random_matrix(6, 12, 1);
  const exec::Matrix before = exec::mix_values(qkv, exec::attention_weights(qkv, shape), shape);
  for (std::int32_t column = 0; column < 12; ++column) qkv.row(4)[column] += 1;
  const exec::Matrix after = exec::mix_values(qkv, exec::attention_weights(qkv, shape), shape);
  for (std::int32_t row = 0; row < 6; ++row)
    for (std::int32_t column = 0; column < 4; ++column) {
      if (row < 4) {
        EXPECT_EQ(before.row(row)[column], after.row(row)[column]);
      }
    }
  EXPECT_NE(before.row(5)[0], after.row(5)[0]);
}

TEST(Layers, CrossEntropyGradient) {
  const exec::Matrix logits = random_matrix(4, 7, 1);
  const std::vector<std::int32_t> targets{3, 0, 6, 3};
  expect_gradient(
      [&](const exec::Matrix& x) { return 2 * exec::cross_entropy(exec::softmax(x), targets); },
      logits, exec::cross_entropy_grad(exec::softmax(logits), targets, 2));
}

TEST(Transformer, EveryWeightsGradientIsTheLosssSlope) {
  exec::TrainingOptions options;
  options.model = {2, 8, 2, 11, 5, 2};
  const exec::Tokens tokens = exec::make_tokens(options, 0, 0);
  const exec::Stage stage = exec::make_stage({options.model, 0, 1, 7});
  std::vector<exec::Matrix> gradients = exec::zeros_like(stage.weights);
  exec::StageOutput made = exec::run_forward(stage, {}, tokens);
  exec::run_weight_grad(exec::run_input_grad(stage, std::move(made.saved), {}, 1).work, gradients);
  for (std::size_t at = 0; at < stage.weights.size(); ++at) {
    SCOPED_TRACE(stage.names[at]);
    exec::Stage changed = stage;
    const auto loss = [&](const exec::Matrix& weight) {
      changed.weights[at] = weight;
      return exec::run_forward(changed, {}, tokens).loss;
    };
    expect_gradient(loss, stage.weights[at], gradients[at]);
  }
}

TEST(Transformer, GradientsOfJoinedInputsAndTheirGainsAreTheLosssSlopes) {
  exec::TrainingOptions options;
  options.model = {1, 8, 2, 11, 5, 2};
  const exec::Tokens tokens = exec::make_tokens(options, 0, 0);
  exec::StagePlan plan{options.model, 2, 3, 7, exec::StageForm{false, true, 2}};
  const exec::Stage stage = exec::make_stage(plan);
  ASSERT_EQ(stage.names.back(), "input1_gain");
  const std::vector<exec::Matrix> inputs{random_matrix(10, 8, 1), random_matrix(10, 8, 2)};
  const auto run = [&](const exec::Stage& weights, const std::vector<exec::Matrix>& read) {
    return exec::run_forward(weights, exec::join(weights, read), tokens);
  };
  exec::Activations saved = run(stage, inputs).saved;
  saved.joined = inputs;
  const exec::StageGrad result = exec::run_input_grad(stage, std::move(saved), {}, 1);
  std::vector<exec::Matrix> gradients = exec::zeros_like(stage.weights);
  exec::run_weight_grad(result.work, gradients);
  ASSERT_EQ(result.input_grads.size(), 2u);
  for (std::size_t input = 0; input < 2; ++input) {
    SCOPED_TRACE(input);
    std::vector<exec::Matrix> changed = inputs;
    const auto loss_of_input = [&](const exec::Matrix& read) {
      changed[input] = read;
      return run(stage, changed).loss;
    };
    expect_gradient(loss_of_input, inputs[input], result.input_grads[input]);
    exec::Stage other = stage;
    const std::size_t gain = exec::join_begin(stage) + input;
    const auto loss_of_gain = [&](const exec::Matrix& weight) {
      other.weights[gain] = weight;
      return run(other, inputs).loss;
    };
    expect_gradient(loss_of_gain, stage.weights[gain], gradients[gain]);
  }
}

TEST(Transformer, LearnsItsData) {
  Schedule schedule;
  schedule.shape.microbatches = 4;
  schedule.rank_of_stage = {0, 0};
  for (const auto kind :
       {exec::OptimizerOptions::Kind::kSgd, exec::OptimizerOptions::Kind::kAdam}) {
    exec::TrainingOptions options;
    options.model.vocabulary = 17;
    options.optimizer = {kind, kind == exec::OptimizerOptions::Kind::kSgd ? 0.5F : 0.01F};
    const exec::TrainingResult result = exec::train_serially(schedule, options, 40);
    EXPECT_LT(result.losses.back(), 0.6 * result.losses.front());
  }
}

}  // namespace
}  // namespace bubblescope::tests
