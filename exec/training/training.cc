// Trains by the ops of a schedule.
#include "exec/training/training.h"

#include <utility>

#include "exec/runtime/keep_memory.h"
#include "exec/training/expect_trainable.h"
#include "exec/training/matrix_blob.h"
#include "sim/ir/error.h"

namespace bubblescope::exec {

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
      messages_(schedule, options_, processes),
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
            if (is_shard(instruction.op) && !is_message(instruction))
              return shard_exchange_.pack(instruction.op);
            return is_message(instruction) ? messages_.pack(instruction) : Blob();
          },
          [this](InstructionId message, std::span<const std::byte> bytes) {
            const Instruction& instruction = program_.instructions[message];
            BlobReader reader(bytes);
            if (publishes_gradients(instruction))
              exchange_.put(message, read_matrices(reader));
            else if (is_copy(instruction.op.kind))
              unpack_copy(instruction, bytes);
            else if (is_message(instruction))
              messages_.unpack(instruction, reader);
            else
              shard_exchange_.put(instruction.op, {read_matrix(reader)});
          },
          [this](InstructionId copy, std::span<const std::byte> bytes) {
            return keep(program_.instructions[copy], bytes);
          }};
}

void Training::run(const WorkItem& item) {
  const Instruction& instruction = program_.instructions[item.id];
  if (is_message(instruction)) return messages_.carry(instruction, item.damage);
  if (is_shard(instruction.op)) return run_shard_pass(instruction);
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

void Training::compute_forward(const Op& op) {
  const Stage& stage = weights_of(op);
  MicrobatchState& state = state_of(op);
  std::vector<Matrix> inputs = messages_.read(Direction::kForward, op);
  Matrix input = stage.first ? Matrix() : join(stage, inputs);
  SavedForward kept;
  if (state.recompute == Recompute::kFull) kept.input = input;
  const std::optional<Slice> slice = slice_of(op);
  StageOutput result =
      run_forward(stage, std::move(input), tokens_of(op), slice ? &*slice : nullptr);
  state.loss = result.loss;
  if (!schedule_.is_last(op.stage))
    messages_.write(Direction::kForward, op, std::move(result.output));
  if (schedule_.forward_only) return free_context(op, schedule_.shape.slices - 1);
  if (state.recompute == Recompute::kSelective) drop_attention(result.saved);
  if (state.recompute != Recompute::kFull) kept.saved = std::move(result.saved);
  if (inputs.size() > 1) kept.saved.joined = std::move(inputs);
  state.complete = state.recompute == Recompute::kNone;
  state.kept = std::move(kept);
  set_held(op, held_bytes(*state.kept) + context_bytes(op));
}

namespace {

/// The inputs of a stage that joins several were kept, and stay.
void recompute_all(const Stage& stage, SavedForward& kept, const Tokens& tokens,
                   const Slice* slice) {
  std::vector<Matrix> joined = std::move(kept.saved.joined);
  kept.saved = run_forward(stage, std::move(kept.input), tokens, slice).saved;
  kept.saved.joined = std::move(joined);
}

}  // namespace

void Training::recompute_forward(const Op& op) {
  MicrobatchState& state = state_of(op);
  if (!state.kept) refuse_before(op, "its input has arrived");
  const Stage& stage = weights_of(op);
  const std::optional<Slice> slice = slice_of(op);
  const Slice* const cut = slice ? &*slice : nullptr;
  if (state.recompute == Recompute::kSelective)
    recompute_attention(stage, state.kept->saved, cut);
  else
    recompute_all(stage, *state.kept, tokens_of(op), cut);
  state.kept->input = Matrix();
  state.complete = true;
  set_held(op, held_bytes(*state.kept) + context_bytes(op));
}

void Training::compute_input_grad(const Op& op) {
  const Stage& stage = weights_of(op);
  MicrobatchState& state = state_of(op);
  if (!state.kept || !state.complete) refuse_before(op, "its saved activations are complete");
  Matrix output_grad = read_output_grad(op);
  const std::optional<Slice> slice = slice_of(op);
  StageGrad result = run_input_grad(stage, std::move(state.kept->saved), std::move(output_grad),
                                    scale_, slice ? &*slice : nullptr);
  state.kept.reset();
  free_context(op, 0);
  state.work = std::move(result.work);
  if (!stage.first) messages_.write_grads(op, std::move(result.input_grads));
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
  Tokens whole = make_tokens(options_, static_cast<std::int32_t>(losses_.size()), op.microbatch);
  const std::int32_t ahead = weights_of(op).ahead;
  if (ahead > 1) whole = look_ahead(std::move(whole), options_, ahead);
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
