// The ops of a schedule as training.
#include "exec/training/training.h"

#include <algorithm>
#include <utility>

#include "exec/training/held_bytes.h"
#include "sim/ir/error.h"

namespace bubblescope {

namespace {

std::uint64_t scramble(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

[[noreturn]] void refuse(const Op& op, const char* lack) {
  throw Error(Fault::kProblem, to_string(op) + " runs before " + lack + " was made");
}

StagePlan plan_of(const Schedule& schedule, const TrainingOptions& options, std::int32_t stage) {
  const std::int32_t stages = schedule.stages_per_pipeline();
  return {options.model, stage % stages, stages, options.seed};
}

}  // namespace

void expect_trainable(const Schedule& schedule, const TrainingOptions& options) {
  if (schedule.shape.slices > 1)
    throw Error("sliced sequences cannot be trained yet; leave --slices out, or use --work sleep");
  if (!schedule.weights.empty())
    throw Error(schedule.name +
                " trains without flushes, on weights of several versions, which is not done yet; "
                "use --work sleep or spin");
  if (options.model.width % options.model.heads != 0)
    throw Error(std::to_string(options.model.heads) + " heads do not divide a width of " +
                std::to_string(options.model.width) + "; choose a multiple as the width");
}

Tokens make_tokens(const TrainingOptions& options, std::int32_t step, std::int32_t microbatch) {
  Tokens tokens;
  const auto vocabulary = static_cast<std::uint64_t>(options.model.vocabulary);
  for (std::int32_t sequence = 0; sequence < options.model.batch; ++sequence) {
    const std::uint64_t place = (static_cast<std::uint64_t>(step) << 40) +
                                (static_cast<std::uint64_t>(microbatch) << 16) +
                                static_cast<std::uint64_t>(sequence);
    std::uint64_t token = scramble(scramble(options.seed) + place) % vocabulary;
    for (std::int32_t position = 0; position < options.model.sequence; ++position) {
      tokens.inputs.push_back(static_cast<std::int32_t>(token));
      token = (token * 5 + 3) % vocabulary;
      tokens.targets.push_back(static_cast<std::int32_t>(token));
    }
  }
  return tokens;
}

Training::Training(const Schedule& schedule, const Program& program, const TrainingOptions& options)
    : schedule_(schedule),
      program_(program),
      options_(options),
      memory_(static_cast<std::size_t>(schedule.shape.ranks)),
      inbox_(schedule.stages(), schedule.shape.microbatches),
      outbox_(schedule.stages(), schedule.shape.microbatches) {
  expect_trainable(schedule, options);
  multiplier();
  for (std::int32_t stage = 0; stage < schedule.stages(); ++stage) {
    StageState& state = stages_.emplace_back();
    state.stage = make_stage(plan_of(schedule, options, stage));
    state.gradients = zeros_like(state.stage.weights);
    state.microbatches.resize(static_cast<std::size_t>(schedule.shape.microbatches));
  }
  for (const RankOrder& ops : schedule.order)
    for (const Op& op : ops)
      if (op.kind == OpKind::kRecompute) state_of(op).recomputes = true;
}

Work Training::work() {
  return [this](const Turn& turn) {
    run(program_.instructions[turn.id]);
    return turn.clock.now();
  };
}

void Training::run(const Instruction& instruction) {
  if (is_message(instruction)) return carry(instruction);
  switch (instruction.op.kind) {
    case OpKind::kForward: return compute_forward(instruction.op);
    case OpKind::kRecompute: return compute_again(instruction.op);
    case OpKind::kInputGrad: return compute_input_grad(instruction.op);
    case OpKind::kWeightGrad: return compute_weight_grad(instruction.op);
    case OpKind::kBackward:
      compute_input_grad(instruction.op);
      return compute_weight_grad(instruction.op);
    case OpKind::kSendForward:
    case OpKind::kRecvForward:
    case OpKind::kSendBackward:
    case OpKind::kRecvBackward:
    case OpKind::kUnshard:
    case OpKind::kReshard:
    case OpKind::kReduceGrad:
    case OpKind::kIdle: return;
  }
}

/// From the stage that made it to the one that reads it; what is not there yet stays behind.
void Training::carry(const Instruction& message) {
  const Op& op = message.op;
  const bool goes_forward = op.kind == OpKind::kSendForward;
  const Direction direction = goes_forward ? Direction::kForward : Direction::kBackward;
  std::optional<Matrix> matrix = outbox_.take({direction, op.stage, op.microbatch});
  if (!matrix) return;
  const std::int32_t reader = op.stage + (goes_forward ? 1 : -1);
  inbox_.put({direction, reader, op.microbatch}, std::move(*matrix));
}

Matrix Training::read(Direction direction, const Op& op) {
  std::optional<Matrix> matrix = inbox_.take({direction, op.stage, op.microbatch});
  if (matrix) return std::move(*matrix);
  return Matrix(options_.model.rows(), options_.model.width);  // a buffer that nothing came into
}

void Training::write(Direction direction, const Op& op, Matrix matrix) {
  const std::int32_t reader = op.stage + (direction == Direction::kForward ? 1 : -1);
  const bool local = schedule_.rank_of_stage[static_cast<std::size_t>(reader)] ==
                     schedule_.rank_of_stage[static_cast<std::size_t>(op.stage)];
  if (local)
    inbox_.put({direction, reader, op.microbatch}, std::move(matrix));
  else
    outbox_.put({direction, op.stage, op.microbatch}, std::move(matrix));
}

void Training::compute_forward(const Op& op) {
  const Stage& stage = stages_[static_cast<std::size_t>(op.stage)].stage;
  MicrobatchState& state = state_of(op);
  Matrix input = stage.first ? Matrix() : read(Direction::kForward, op);
  if (state.recomputes) state.input = input;
  StageOutput made = run_forward(stage, std::move(input), tokens_of(op));
  state.loss = made.loss;
  if (!stage.last) write(Direction::kForward, op, std::move(made.output));
  if (schedule_.forward_only) return;
  if (!state.recomputes) state.saved = std::move(made.saved);
  hold(op, state.recomputes ? state.input.bytes() : held_bytes(*state.saved));
}

void Training::compute_again(const Op& op) {
  MicrobatchState& state = state_of(op);
  const Stage& stage = stages_[static_cast<std::size_t>(op.stage)].stage;
  state.saved = run_forward(stage, std::move(state.input), tokens_of(op)).saved;
  hold(op, held_bytes(*state.saved));
}

void Training::compute_input_grad(const Op& op) {
  const Stage& stage = stages_[static_cast<std::size_t>(op.stage)].stage;
  MicrobatchState& state = state_of(op);
  if (!state.saved) refuse(op, "its forward");
  Matrix output_grad = stage.last ? Matrix() : read(Direction::kBackward, op);
  const float scale = 1 / static_cast<float>(schedule_.shape.microbatches);
  StageGrad made = run_input_grad(stage, std::move(*state.saved), std::move(output_grad), scale);
  state.saved.reset();
  state.work = std::move(made.work);
  if (!stage.first) write(Direction::kBackward, op, std::move(made.input_grad));
  hold(op, held_bytes(*state.work));
}

void Training::compute_weight_grad(const Op& op) {
  MicrobatchState& state = state_of(op);
  if (!state.work) refuse(op, "its input gradient");
  run_weight_grad(*state.work, stages_[static_cast<std::size_t>(op.stage)].gradients);
  state.work.reset();
  hold(op, 0);
}

/// The micro-batch now holds so many bytes on its rank.
void Training::hold(const Op& op, Bytes bytes) {
  const std::int32_t rank = schedule_.rank_of_stage[static_cast<std::size_t>(op.stage)];
  RankMemory& memory = memory_[static_cast<std::size_t>(rank)];
  memory.held += bytes - std::exchange(state_of(op).held, bytes);
  memory.peak = std::max(memory.peak, memory.held);
}

Training::MicrobatchState& Training::state_of(const Op& op) {
  return stages_[static_cast<std::size_t>(op.stage)]
      .microbatches[static_cast<std::size_t>(op.microbatch)];
}

Tokens Training::tokens_of(const Op& op) const {
  return make_tokens(options_, static_cast<std::int32_t>(losses_.size()), op.microbatch);
}

void Training::sum_replicas() {
  const std::size_t originals = static_cast<std::size_t>(schedule_.stages_per_pipeline());
  for (std::size_t stage = originals; stage < stages_.size(); ++stage)
    for (std::size_t at = 0; at < stages_[stage].gradients.size(); ++at)
      add(stages_[stage % originals].gradients[at], stages_[stage].gradients[at]);
  for (std::size_t stage = originals; stage < stages_.size(); ++stage)
    stages_[stage].gradients = stages_[stage % originals].gradients;
}

void Training::finish_step() {
  sum_replicas();
  double loss = 0;
  for (std::int32_t microbatch = 0; microbatch < schedule_.shape.microbatches; ++microbatch)
    for (StageState& state : stages_)
      loss += std::exchange(state.microbatches[static_cast<std::size_t>(microbatch)].loss, 0);
  losses_.push_back(loss / schedule_.shape.microbatches);
  last_gradients_.clear();
  for (StageState& state : stages_) {
    if (!schedule_.forward_only)
      update(state.stage.weights, state.gradients, state.optimizer, options_.optimizer);
    std::vector<Matrix> zeros = zeros_like(state.stage.weights);
    last_gradients_.push_back(std::exchange(state.gradients, std::move(zeros)));
  }
}

TrainingResult Training::result() const {
  TrainingResult result;
  result.losses = losses_;
  const auto originals = static_cast<std::size_t>(schedule_.stages_per_pipeline());
  for (std::size_t stage = 0; stage < originals; ++stage) {
    result.stages.push_back(stages_[stage].stage);
    if (!last_gradients_.empty()) result.gradients.push_back(last_gradients_[stage]);
  }
  return result;
}

std::vector<Bytes> Training::peak_bytes() const {
  std::vector<Bytes> peaks;
  for (const RankMemory& memory : memory_) peaks.push_back(memory.peak);
  return peaks;
}

}  // namespace bubblescope
