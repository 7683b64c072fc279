// The ops of a schedule as training.
#include "exec/training/training.h"

#include <algorithm>
#include <utility>

#include "sim/ir/error.h"

namespace bubblescope {

namespace {

std::uint64_t scramble(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

/// Memory of another process is out of a copy's reach.
void expect_keepers_here(const Schedule& schedule, const Processes& processes) {
  if (!processes.here()) return;
  for (std::size_t rank = 0; rank < schedule.keeper_of_rank.size(); ++rank) {
    const std::int32_t keeper = schedule.keeper_of_rank[rank];
    if (keeper == static_cast<std::int32_t>(rank)) continue;
    throw Error("rank " + std::to_string(rank) + " evicts to rank " + std::to_string(keeper) +
                ", which runs in another process; that is not done yet: run both in one, as "
                "--backend cpu does");
  }
}

[[noreturn]] void refuse(const Op& op, const char* lack) {
  throw Error(Fault::kProblem, to_string(op) + " runs before " + lack);
}

Direction direction_of(const Op& message) {
  return message.kind == OpKind::kSendForward ? Direction::kForward : Direction::kBackward;
}

/// The stage that reads a message.
std::int32_t reader_of(const Op& message) {
  return message.stage + (message.kind == OpKind::kSendForward ? 1 : -1);
}

StagePlan plan_of(const Schedule& schedule, const TrainingOptions& options, std::int32_t stage) {
  const std::int32_t stages = schedule.stages_per_pipeline();
  return {options.model, stage % stages, stages, options.seed};
}

}  // namespace

void expect_trainable(const Schedule& schedule, const TrainingOptions& options,
                      const Processes& processes) {
  expect_keepers_here(schedule, processes);
  if (schedule.shape.slices > 1)
    throw Error("sliced sequences cannot be trained yet; leave --slices out, or use --work sleep");
  if (!schedule.replicas_of_stage.empty())
    throw Error(
        "ranks that share a stage cannot be trained yet; leave --replicas out, or use "
        "--work sleep");
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

Training::Training(const Schedule& schedule, const Program& program, const TrainingOptions& options,
                   const Processes& processes)
    : schedule_(schedule),
      program_(program),
      processes_(processes),
      options_(options),
      uses_(weight_uses(schedule)),
      scale_(gradient_scale(schedule)),
      stages_(static_cast<std::size_t>(schedule.stages())),
      memory_(static_cast<std::size_t>(schedule.shape.ranks)),
      inbox_(schedule.stages(), schedule.shape.microbatches),
      outbox_(schedule.stages(), schedule.shape.microbatches) {
  expect_trainable(schedule, options, processes);
  multiplier();
  for (std::int32_t stage = 0; stage < schedule.stages(); ++stage) {
    if (!runs_stage(stage)) continue;
    const auto at = static_cast<std::size_t>(stage);
    stages_[at].weights = WeightVersions(make_stage(plan_of(schedule, options, stage)), uses_[at]);
    stages_[at].gradients = zeros_like(stages_[at].weights.newest().weights);
    stages_[at].last_gradients = stages_[at].gradients;
    stages_[at].microbatches.resize(static_cast<std::size_t>(schedule.shape.microbatches));
  }
  for (const RankOrder& ops : schedule.order)
    for (const Op& op : ops)
      if (op.kind == OpKind::kRecompute && runs_stage(op.stage))
        state_of(op).recompute = schedule.recompute(op.stage);
  // Replicas are summed over all processes, at the end; asynchronous backwards update by
  // themselves.
  const bool alone = schedule.pipelines == 1 && schedule.weights.empty();
  updates_inside_ = alone && std::any_of(program.instructions.begin(), program.instructions.end(),
                                         [](const Instruction& instruction) {
                                           return instruction.op.kind == OpKind::kOptimizer;
                                         });
}

bool Training::runs_stage(std::int32_t stage) const {
  return processes_.runs(schedule_.rank_of_stage[static_cast<std::size_t>(stage)]);
}

Work Training::work() {
  return [this](const Turn& turn) {
    run(turn);
    return turn.clock.now();
  };
}

Cargo Training::cargo() {
  return {[this](InstructionId message) {
            if (!is_message(program_.instructions[message])) return Blob();
            const Op& op = program_.instructions[message].op;
            const auto parcel = outbox_.take({direction_of(op), op.stage, op.microbatch});
            return parcel ? pack(*parcel) : Blob();
          },
          [this](InstructionId message, std::span<const std::byte> bytes) {
            const Op& op = program_.instructions[message].op;
            inbox_.put({direction_of(op), reader_of(op), op.microbatch}, unpack(bytes));
          }};
}

void Training::run(const Turn& turn) {
  const Instruction& instruction = program_.instructions[turn.id];
  if (is_message(instruction)) return carry(instruction, turn.damage);
  switch (instruction.op.kind) {
    case OpKind::kForward: return compute_forward(instruction.op);
    case OpKind::kRecompute: return compute_again(instruction.op);
    case OpKind::kInputGrad: return compute_input_grad(instruction.op);
    case OpKind::kWeightGrad: return compute_weight_grad(instruction.op);
    case OpKind::kBackward:
      compute_input_grad(instruction.op);
      return compute_weight_grad(instruction.op);
    case OpKind::kEvict: return move_out(instruction);
    case OpKind::kLoad: return move_back(instruction);
    case OpKind::kSendForward:
    case OpKind::kRecvForward:
    case OpKind::kSendBackward:
    case OpKind::kRecvBackward:
    case OpKind::kUnshard:
    case OpKind::kReshard:
    case OpKind::kReduceGrad:
    case OpKind::kNorm:
    case OpKind::kIdle: return;
    case OpKind::kOptimizer:
      if (updates_inside_) update(static_cast<std::size_t>(instruction.op.stage));
      return;
  }
}

/// From the stage that made it to the one that reads it; what is not there yet stays behind.
void Training::carry(const Instruction& message, Damage damage) {
  const Op& op = message.op;
  const Direction direction = direction_of(op);
  std::optional<Parcel> parcel = outbox_.take({direction, op.stage, op.microbatch});
  if (!parcel) return;
  Parcel sealed = seal(std::move(parcel->matrix), damage);
  if (processes_.runs(message.peer))
    inbox_.put({direction, reader_of(op), op.microbatch}, std::move(sealed));
  else
    outbox_.put({direction, op.stage, op.microbatch}, std::move(sealed));
}

Matrix Training::read(Direction direction, const Op& op) {
  const std::int32_t rows = options_.model.rows();
  std::optional<Parcel> parcel = inbox_.take({direction, op.stage, op.microbatch});
  if (!parcel) return Matrix(rows, options_.model.width);  // a buffer that nothing came into
  const std::string damage = find_damage(*parcel, rows, options_.model.width);
  if (damage.empty()) return std::move(parcel->matrix);
  const std::int32_t maker = op.stage + (direction == Direction::kForward ? -1 : 1);
  const auto rank_of = [&](std::int32_t stage) {
    return std::to_string(schedule_.rank_of_stage[static_cast<std::size_t>(stage)]);
  };
  throw Error(Fault::kMachine, "rank " + rank_of(maker) + " sent " + damage +
                                   "; it is what stage " + std::to_string(maker) + " made for " +
                                   to_string(op) + " of rank " + rank_of(op.stage));
}

void Training::write(Direction direction, const Op& op, Matrix matrix) {
  const std::int32_t reader = op.stage + (direction == Direction::kForward ? 1 : -1);
  const bool local = schedule_.rank_of_stage[static_cast<std::size_t>(reader)] ==
                     schedule_.rank_of_stage[static_cast<std::size_t>(op.stage)];
  if (local)
    inbox_.put({direction, reader, op.microbatch}, {std::move(matrix), std::nullopt});
  else
    outbox_.put({direction, op.stage, op.microbatch}, {std::move(matrix), std::nullopt});
}

void Training::compute_forward(const Op& op) {
  const Stage& stage = weights_of(op);
  MicrobatchState& state = state_of(op);
  Matrix input = stage.first ? Matrix() : read(Direction::kForward, op);
  Kept kept;
  if (state.recompute == Recompute::kFull) kept.input = input;
  StageOutput made = run_forward(stage, std::move(input), tokens_of(op));
  state.loss = made.loss;
  if (!stage.last) write(Direction::kForward, op, std::move(made.output));
  if (schedule_.forward_only) return;
  if (state.recompute == Recompute::kSelective) drop_attention(made.saved);
  if (state.recompute != Recompute::kFull) kept.saved = std::move(made.saved);
  state.complete = state.recompute == Recompute::kNone;
  state.kept = std::move(kept);
  hold(op, held_bytes(*state.kept));
}

void Training::compute_again(const Op& op) {
  MicrobatchState& state = state_of(op);
  if (!state.kept) refuse(op, "what it starts from is here");
  const Stage& stage = weights_of(op);
  if (state.recompute == Recompute::kSelective)
    recompute_attention(stage, state.kept->saved);
  else
    state.kept->saved = run_forward(stage, std::move(state.kept->input), tokens_of(op)).saved;
  state.kept->input = Matrix();
  state.complete = true;
  hold(op, held_bytes(*state.kept));
}

/// The copy is there before its original goes.
void Training::move_out(const Instruction& evict) {
  MicrobatchState& state = state_of(evict.op);
  if (!state.kept) refuse(evict.op, "its forward was made");
  const bool host = evict.peer == evict.rank;
  if (!host) memory_[static_cast<std::size_t>(evict.peer)].add(state.held);
  state.elsewhere = *state.kept;
  state.kept.reset();
  hold(evict.op, 0);
}

void Training::move_back(const Instruction& load) {
  MicrobatchState& state = state_of(load.op);
  if (!state.elsewhere) refuse(load.op, "what it brings back has left");
  state.kept = *state.elsewhere;
  hold(load.op, held_bytes(*state.kept));
  state.elsewhere.reset();
  const bool host = load.peer == load.rank;
  if (!host) memory_[static_cast<std::size_t>(load.peer)].add(-state.held);
}

void Training::compute_input_grad(const Op& op) {
  const Stage& stage = weights_of(op);
  MicrobatchState& state = state_of(op);
  if (!state.kept || !state.complete) refuse(op, "what its forward keeps is here, whole");
  Matrix output_grad = stage.last ? Matrix() : read(Direction::kBackward, op);
  StageGrad made =
      run_input_grad(stage, std::move(state.kept->saved), std::move(output_grad), scale_);
  state.kept.reset();
  state.work = std::move(made.work);
  if (!stage.first) write(Direction::kBackward, op, std::move(made.input_grad));
  hold(op, held_bytes(*state.work));
}

void Training::compute_weight_grad(const Op& op) {
  MicrobatchState& state = state_of(op);
  if (!state.work) refuse(op, "its input gradient was made");
  const auto at = static_cast<std::size_t>(op.stage);
  run_weight_grad(*state.work, stages_[at].gradients);
  state.work.reset();
  hold(op, 0);
  const WeightUse& use = uses_[at][static_cast<std::size_t>(op.microbatch)];
  stages_[at].weights.let_go(use.read);
  if (use.written) update(at);
}

/// Of the weights as of now; the gradients begin anew.
void Training::update(std::size_t stage) {
  StageState& state = stages_[stage];
  state.weights.update(state.gradients, options_.optimizer);
  std::vector<Matrix> zeros = zeros_like(state.gradients);
  state.last_gradients = std::exchange(state.gradients, std::move(zeros));
}

void Training::RankMemory::add(Bytes bytes) {
  const std::lock_guard lock(mutex);
  held += bytes;
  peak = std::max(peak, held);
}

/// The micro-batch now holds so many bytes on its rank.
void Training::hold(const Op& op, Bytes bytes) {
  const std::int32_t rank = schedule_.rank_of_stage[static_cast<std::size_t>(op.stage)];
  memory_[static_cast<std::size_t>(rank)].add(bytes - std::exchange(state_of(op).held, bytes));
}

Training::MicrobatchState& Training::state_of(const Op& op) {
  return stages_[static_cast<std::size_t>(op.stage)]
      .microbatches[static_cast<std::size_t>(op.microbatch)];
}

const Stage& Training::weights_of(const Op& op) const {
  const auto at = static_cast<std::size_t>(op.stage);
  return stages_[at].weights.read(uses_[at][static_cast<std::size_t>(op.microbatch)].read, op);
}

Tokens Training::tokens_of(const Op& op) const {
  return make_tokens(options_, static_cast<std::int32_t>(losses_.size()), op.microbatch);
}

}  // namespace bubblescope
