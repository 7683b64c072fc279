// Trains by the ops of a schedule.
#include "exec/training/training.h"

#include <utility>

#include "exec/runtime/keep_memory.h"
#include "exec/training/matrix_blob.h"
#include "sim/ir/error.h"

namespace bubblescope::exec {

namespace {

Direction direction_of(const Op& message) {
  return message.kind == OpKind::kSendForward ? Direction::kForward : Direction::kBackward;
}

/// The slot in which the producer leaves the matrix.
Slot outbox_slot(const Op& message) {
  return {direction_of(message), message.stage, message.microbatch, message.slice};
}

/// The slot in which the reader expects it.
Slot inbox_slot(const Op& message) {
  const std::int32_t step = message.kind == OpKind::kSendForward ? 1 : -1;
  return {direction_of(message), message.stage + step, message.microbatch, message.slice};
}

}  // namespace

Training::Training(const Schedule& schedule, const Program& program, const TrainingOptions& options,
                   const Processes& processes)
    : schedule_(schedule),
      program_(program),
      processes_(processes),
      options_(options),
      uses_(weight_uses(schedule)),
      scale_(gradient_scale(schedule)),
      update_scales_(update_scales(schedule)),
      stage_replicas_(schedule),
      memory_(static_cast<std::size_t>(schedule.shape.ranks)),
      inbox_(schedule),
      outbox_(schedule),
      exchange_(program, processes) {
  expect_trainable(schedule, options);
  keep_freed_memory();
  gemm_library();
  for (StageReplica replica = 0; replica < stage_replicas_.size(); ++replica) make_replica(replica);
  for (const RankOrder& ops : schedule.order)
    for (const Op& op : ops)
      if (op.kind == OpKind::kRecompute && processes.runs(rank_of(op)))
        state_of(op).recompute = schedule.recompute(op.stage);
  program_updates_ = find_program_updates(schedule, program).updates;
}

void Training::make_replica(StageReplica replica) {
  StageState& state = stages_.emplace_back();
  if (!processes_.runs(stage_replicas_.rank(replica))) return;
  const std::int32_t stage = stage_replicas_.stage(replica);
  const std::int32_t microbatches = schedule_.shape.microbatches;
  std::vector<WeightUse> uses;
  for (std::int32_t at = 0; at < microbatches; ++at)
    if (stage_replicas_.find(forward(stage, at)) == replica)
      uses.push_back(uses_[static_cast<std::size_t>(stage)][static_cast<std::size_t>(at)]);
  state.weights = WeightVersions(make_stage(plan_of(schedule_, options_, stage)), std::move(uses));
  state.gradients = zeros_like(state.weights.newest().weights);
  state.last_gradients = state.gradients;
  state.microbatches.resize(static_cast<std::size_t>(microbatches) *
                            static_cast<std::size_t>(schedule_.shape.slices));
  state.contexts.resize(static_cast<std::size_t>(microbatches));
}

void Training::refuse_before(const Op& op, const char* lack) {
  throw Error(Fault::kProblem, to_string(op) + " runs before " + lack);
}

Work Training::work() {
  return [this](const WorkItem& item) {
    run(item);
    return item.clock.now();
  };
}

PayloadCodec Training::payload_codec() {
  return {[this](InstructionId message) {
            const Instruction& instruction = program_.instructions[message];
            if (program_updates_ && publishes_gradients(instruction))
              return exchange_.pack(message);
            if (is_copy(instruction.op.kind)) return pack_copy(instruction);
            if (!is_message(instruction)) return Blob();
            const auto payload = outbox_.take(outbox_slot(instruction.op));
            return payload ? pack(*payload) : Blob();
          },
          [this](InstructionId message, std::span<const std::byte> bytes) {
            const Instruction& instruction = program_.instructions[message];
            BlobReader reader(bytes);
            if (publishes_gradients(instruction))
              exchange_.put(message, read_matrices(reader));
            else if (is_copy(instruction.op.kind))
              unpack_copy(instruction, bytes);
            else
              inbox_.put(inbox_slot(instruction.op), unpack(bytes));
          },
          [this](InstructionId copy, std::span<const std::byte> bytes) {
            return keep(program_.instructions[copy], bytes);
          }};
}

void Training::run(const WorkItem& item) {
  const Instruction& instruction = program_.instructions[item.id];
  if (is_message(instruction)) return carry(instruction, item.damage);
  switch (instruction.op.kind) {
    case OpKind::kForward: return compute_forward(instruction.op);
    case OpKind::kRecompute: return recompute_forward(instruction.op);
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
    case OpKind::kWaitSendForward:
    case OpKind::kWaitSendBackward:
    case OpKind::kUnshard:
    case OpKind::kReshard:
    case OpKind::kNorm:
    case OpKind::kWaitReduceGrad:
    case OpKind::kIdle: return;
    case OpKind::kReduceGrad:
      if (program_updates_) reduce(item.id);
      return;
    case OpKind::kOptimizer:
      if (program_updates_) update(replica_of(instruction));
      return;
  }
}

/// Moves a matrix from its producer to its reader; if it is not produced yet, nothing is moved.
void Training::carry(const Instruction& message, Damage damage) {
  std::optional<Payload> payload = outbox_.take(outbox_slot(message.op));
  if (!payload) return;
  Payload sealed = seal(std::move(payload->matrix), damage);
  if (processes_.runs(message.peer))
    inbox_.put(inbox_slot(message.op), std::move(sealed));
  else
    outbox_.put(outbox_slot(message.op), std::move(sealed));
}

Matrix Training::read(Direction direction, const Op& op) {
  const Positions positions =
      positions_of(options_.model.sequence, schedule_.shape.slices, op.slice);
  const std::int32_t rows = options_.model.batch * positions.count;
  std::optional<Payload> payload = inbox_.take({direction, op.stage, op.microbatch, op.slice});
  if (!payload) return Matrix(rows, options_.model.width);  // as if nothing had arrived
  const std::string damage = find_damage(*payload, rows, options_.model.width);
  if (damage.empty()) return std::move(payload->matrix);
  const std::int32_t producer = op.stage + (direction == Direction::kForward ? -1 : 1);
  const auto rank_of = [&](std::int32_t stage) {
    return std::to_string(schedule_.rank_of(stage, op.microbatch));
  };
  throw Error(Fault::kMachine, "rank " + rank_of(producer) + " sent " + damage +
                                   "; it is the output of stage " + std::to_string(producer) +
                                   " for " + to_string(op) + " of rank " + rank_of(op.stage));
}

void Training::write(Direction direction, const Op& op, Matrix matrix) {
  const std::int32_t reader = op.stage + (direction == Direction::kForward ? 1 : -1);
  const bool local = schedule_.rank_of(reader, op.microbatch) == rank_of(op);
  Mailbox& box = local ? inbox_ : outbox_;
  box.put({direction, local ? reader : op.stage, op.microbatch, op.slice},
          {std::move(matrix), std::nullopt});
}

void Training::compute_forward(const Op& op) {
  const Stage& stage = weights_of(op);
  MicrobatchState& state = state_of(op);
  Matrix input = stage.first ? Matrix() : read(Direction::kForward, op);
  SavedForward kept;
  if (state.recompute == Recompute::kFull) kept.input = input;
  const std::optional<Slice> slice = slice_of(op);
  StageOutput result =
      run_forward(stage, std::move(input), tokens_of(op), slice ? &*slice : nullptr);
  state.loss = result.loss;
  if (!stage.last) write(Direction::kForward, op, std::move(result.output));
  if (schedule_.forward_only) return free_context(op, schedule_.shape.slices - 1);
  if (state.recompute == Recompute::kSelective) drop_attention(result.saved);
  if (state.recompute != Recompute::kFull) kept.saved = std::move(result.saved);
  state.complete = state.recompute == Recompute::kNone;
  state.kept = std::move(kept);
  set_held(op, held_bytes(*state.kept) + context_bytes(op));
}

void Training::recompute_forward(const Op& op) {
  MicrobatchState& state = state_of(op);
  if (!state.kept) refuse_before(op, "its input has arrived");
  const Stage& stage = weights_of(op);
  const std::optional<Slice> slice = slice_of(op);
  const Slice* const cut = slice ? &*slice : nullptr;
  if (state.recompute == Recompute::kSelective)
    recompute_attention(stage, state.kept->saved, cut);
  else
    state.kept->saved = run_forward(stage, std::move(state.kept->input), tokens_of(op), cut).saved;
  state.kept->input = Matrix();
  state.complete = true;
  set_held(op, held_bytes(*state.kept) + context_bytes(op));
}

void Training::compute_input_grad(const Op& op) {
  const Stage& stage = weights_of(op);
  MicrobatchState& state = state_of(op);
  if (!state.kept || !state.complete) refuse_before(op, "its saved activations are complete");
  Matrix output_grad = stage.last ? Matrix() : read(Direction::kBackward, op);
  const std::optional<Slice> slice = slice_of(op);
  StageGrad result = run_input_grad(stage, std::move(state.kept->saved), std::move(output_grad),
                                    scale_, slice ? &*slice : nullptr);
  state.kept.reset();
  free_context(op, 0);
  state.work = std::move(result.work);
  if (!stage.first) write(Direction::kBackward, op, std::move(result.input_grad));
  set_held(op, held_bytes(*state.work));
}

void Training::compute_weight_grad(const Op& op) {
  MicrobatchState& state = state_of(op);
  if (!state.work) refuse_before(op, "its input gradient has run");
  const StageReplica replica = stage_replicas_.find(op);
  run_weight_grad(*state.work, stages_[replica].gradients);
  state.work.reset();
  set_held(op, 0);
  if (op.slice != 0) return;
  const WeightUse& use =
      uses_[static_cast<std::size_t>(op.stage)][static_cast<std::size_t>(op.microbatch)];
  stages_[replica].weights.release(use.read);
  if (use.written && !program_updates_) update(replica);
}

/// A post publishes this rank's gradients, a join their sum, and the work takes the sum.
void Training::reduce(InstructionId id) {
  const Instruction& reduction = program_.instructions[id];
  std::vector<Matrix>& gradients = stages_[replica_of(reduction)].gradients;
  if (!publishes_gradients(reduction)) {
    if (exchange_.sums(id)) gradients = exchange_.sum(id);
    return;
  }
  if (exchange_.sums(id)) return exchange_.put(id, exchange_.sum(id));
  std::vector<Matrix> zeros = zeros_like(gradients);
  exchange_.put(id, std::exchange(gradients, std::move(zeros)));
}

/// Updates the current weights and resets the gradients.
void Training::update(StageReplica replica) {
  StageState& state = stages_[replica];
  multiply(state.gradients, update_scales_[stage_of(replica)]);
  state.weights.update(state.gradients, options_.optimizer);
  std::vector<Matrix> zeros = zeros_like(state.gradients);
  state.last_gradients = std::exchange(state.gradients, std::move(zeros));
}

/// Sets the bytes that the micro-batch holds on its rank.
void Training::set_held(const Op& op, Bytes bytes) {
  memory_[static_cast<std::size_t>(rank_of(op))].add(bytes -
                                                     std::exchange(state_of(op).held, bytes));
}

MicrobatchState& Training::state_of(const Op& op) {
  return stages_[stage_replicas_.find(op)]
      .microbatches[static_cast<std::size_t>(schedule_.forward_index(op))];
}

const Stage& Training::weights_of(const Op& op) const {
  const WeightUse& use =
      uses_[static_cast<std::size_t>(op.stage)][static_cast<std::size_t>(op.microbatch)];
  return stages_[stage_replicas_.find(op)].weights.read(use.read, op);
}

Tokens Training::tokens_of(const Op& op) const {
  const Tokens whole =
      make_tokens(options_, static_cast<std::int32_t>(losses_.size()), op.microbatch);
  const std::int32_t sequence = options_.model.sequence;
  return take_tokens(whole, sequence, positions_of(sequence, schedule_.shape.slices, op.slice));
}

/// All ops of a micro-batch on a stage are in one lane, so its context needs no lock.
std::optional<Slice> Training::slice_of(const Op& op) {
  if (schedule_.shape.slices == 1) return std::nullopt;
  SliceContext& context =
      stages_[stage_replicas_.find(op)].contexts[static_cast<std::size_t>(op.microbatch)];
  if (context.qkv.empty()) context = make_context(options_.model);
  return Slice{positions_of(options_.model.sequence, schedule_.shape.slices, op.slice), context};
}

/// The slice's own queries, keys and values.
Bytes Training::context_bytes(const Op& op) const {
  return bubblescope::exec::context_bytes(options_.model, schedule_.shape.slices, op.slice);
}

/// Frees the context after the op of the last slice that needs it.
void Training::free_context(const Op& op, std::int32_t last_slice) {
  if (op.slice == last_slice)
    stages_[stage_replicas_.find(op)].contexts[static_cast<std::size_t>(op.microbatch)] = {};
}

}  // namespace bubblescope::exec
