// Matches names against a table, and against the grammar of cells.
#include "traces/measured/op_names.h"

#include <algorithm>
#include <array>

#include "sim/ir/number.h"
#include "traces/schedules/cell.h"

namespace bubblescope::traces {

namespace {

struct Word {
  std::string_view name;
  OpKind kind;
};

constexpr std::array<Word, 9> kWords{{
    {"forward-compute", OpKind::kForward},
    {"backward-compute", OpKind::kBackward},
    {"backward-wgrad-compute", OpKind::kWeightGrad},
    {"forward-send", OpKind::kSendForward},
    {"forward-recv", OpKind::kRecvForward},
    {"backward-send", OpKind::kSendBackward},
    {"backward-recv", OpKind::kRecvBackward},
    {"DeepSpeedEngine.forward", OpKind::kForward},
    {"DeepSpeedEngine.backward", OpKind::kBackward},
}};

/// Functions, whose names may begin with their module: "megatron.core...schedules.forward_step".
constexpr std::array<Word, 2> kFunctions{{
    {"forward_step", OpKind::kForward},
    {"backward_step", OpKind::kBackward},
}};

/// Methods of DeepSpeed's pipeline engine: "PipelineEngine._exec_forward_pass". Without its class
/// or prefix, they are anyone's.
constexpr std::array<Word, 10> kPipelineMethods{{
    {"forward_pass", OpKind::kForward},
    {"backward_pass", OpKind::kBackward},
    {"send_activation", OpKind::kSendForward},
    {"recv_activation", OpKind::kRecvForward},
    {"send_activations", OpKind::kSendForward},
    {"recv_activations", OpKind::kRecvForward},
    {"send_grad", OpKind::kSendBackward},
    {"recv_grad", OpKind::kRecvBackward},
    {"send_grads", OpKind::kSendBackward},
    {"recv_grads", OpKind::kRecvBackward},
}};

/// DeepSpeed's instructions, which state a buffer, not the micro-batch: "ForwardPass(buffer_id=1)".
constexpr std::array<Word, 6> kInstructions{{
    {"ForwardPass(", OpKind::kForward},
    {"BackwardPass(", OpKind::kBackward},
    {"SendActivation(", OpKind::kSendForward},
    {"RecvActivation(", OpKind::kRecvForward},
    {"SendGrad(", OpKind::kSendBackward},
    {"RecvGrad(", OpKind::kRecvBackward},
}};

/// The zero-bubble fork's names begin with these; "B" is a full backward if no weight gradient is
/// named.
constexpr std::array<Word, 4> kLetters{{
    {"F", OpKind::kForward},
    {"BW", OpKind::kBackward},
    {"B", OpKind::kBackward},
    {"W", OpKind::kWeightGrad},
}};

constexpr std::array<Word, 2> kNumberedWords{{
    {"Forward ", OpKind::kForward},
    {"Backward ", OpKind::kBackward},
}};

std::optional<NamedOp> numbered(std::string_view number, OpKind kind) {
  NamedOp named;
  named.op.kind = kind;
  named.has_stage = false;
  const auto microbatch = parse_number<std::int32_t>(number);
  if (!microbatch || *microbatch < 0 || *microbatch > kMaxMicrobatch) return {};
  named.op.microbatch = *microbatch;
  return named;
}

std::optional<NamedOp> cell(std::string_view name) {
  if (name.empty() || name.front() < '0' || name.front() > '9' || name.size() > 32) return {};
  const Cell cell = parse_cell(name, CellGrammar::kOwn);
  if (!cell.sound() || cell.count != 1) return {};
  const OpKind kind = cell.ops[0].kind;
  if (!is_compute(kind) && !is_message(kind)) return {};
  return NamedOp{cell.ops[0]};
}

NamedOp unnumbered(OpKind kind) {
  NamedOp named{{}, false, false};
  named.op.kind = kind;
  return named;
}

/// Splits "3.1.0" into its numbers; nullopt for anything else.
std::optional<std::array<std::int32_t, 3>> three_numbers(std::string_view text) {
  std::array<std::int32_t, 3> numbers{};
  for (std::size_t at = 0; at < numbers.size(); ++at) {
    const std::size_t dot = at + 1 < numbers.size() ? text.find('.') : text.size();
    if (dot == text.npos) return {};
    const auto number = parse_number<std::int32_t>(text.substr(0, dot));
    if (!number || *number < 0) return {};
    numbers[at] = *number;
    text.remove_prefix(std::min(text.size(), dot + 1));
  }
  return numbers;
}

/// Reads a name such as "F3.1.0": micro-batch, chunk and slice.
std::optional<NamedOp> zero_bubble(std::string_view name) {
  for (const Word& letter : kLetters) {
    if (!name.starts_with(letter.name)) continue;
    const auto numbers = three_numbers(name.substr(letter.name.size()));
    if (!numbers) continue;
    const auto [microbatch, chunk, slice] = *numbers;
    if (microbatch > kMaxMicrobatch || chunk > kMaxStage || slice > kMaxSlice) return {};
    NamedOp named = unnumbered(letter.kind);
    named.op.microbatch = microbatch;
    named.op.slice = static_cast<std::int16_t>(slice);
    named.has_microbatch = true;
    named.chunk = chunk;
    named.may_be_input_grad = letter.name == "B";
    return named;
  }
  return {};
}

/// Removes what emit_nvtx appended, as in "PP:0F3, op_id = 11".
std::string_view without_suffix(std::string_view name) { return name.substr(0, name.find(", ")); }

/// Returns the kind of op that a method or an instruction of DeepSpeed's pipeline engine runs.
std::optional<OpKind> find_pipeline_call(std::string_view name) {
  constexpr std::string_view kPrefix = "_exec_";
  for (const Word& word : kInstructions)
    if (name.starts_with(word.name)) return word.kind;
  std::string_view method = name.substr(name.rfind('.') + 1);
  const bool is_engine = name.find("PipelineEngine.") != name.npos || method.starts_with(kPrefix);
  if (!is_engine) return {};
  if (method.starts_with(kPrefix)) method.remove_prefix(kPrefix.size());
  for (const Word& word : kPipelineMethods)
    if (method == word.name) return word.kind;
  return {};
}

}  // namespace

std::optional<std::array<Op, 2>> parse_pair_name(std::string_view name) {
  constexpr std::size_t kMaxLength = 80;
  if (name.starts_with("PP:")) name.remove_prefix(3);
  if (!name.starts_with('(') || name.size() > kMaxLength) return {};
  const Cell pair = parse_cell(without_suffix(name), CellGrammar::kPytorch);
  if (!pair.sound() || pair.count != 2) return {};
  return pair.ops;
}

std::optional<std::int64_t> parse_step_mark(std::string_view name) {
  constexpr std::array<std::string_view, 9> kMarks{"iteration",  "Iteration",     "iter",
                                                   "Iter",       "step",          "Step",
                                                   "train_step", "training_step", "ProfilerStep"};
  name = without_suffix(name);
  for (const std::string_view mark : kMarks) {
    if (!name.starts_with(mark)) continue;
    const std::size_t number = name.find_first_not_of(" _:#=", mark.size());
    if (number == name.npos || number == mark.size()) continue;
    if (const auto step = parse_number<std::int64_t>(name.substr(number)); step && *step >= 0)
      return step;
  }
  return {};
}

std::optional<NamedOp> parse_op_name(std::string_view name) {
  constexpr std::size_t kMaxLength = 160;  // with the module of a function; kernels' are longer
  if (name.size() > kMaxLength) return {};
  name = without_suffix(name);
  for (const Word& word : kWords)
    if (name == word.name) {
      NamedOp named = unnumbered(word.kind);
      named.may_be_input_grad = word.name == "backward-compute";
      return named;
    }
  const std::string_view function = name.substr(name.rfind('.') + 1);
  for (const Word& word : kFunctions)
    if (function == word.name) {
      NamedOp named = unnumbered(word.kind);
      named.may_have_chunk = true;
      return named;
    }
  if (const std::optional<OpKind> kind = find_pipeline_call(name)) return unnumbered(*kind);
  if (std::optional<NamedOp> named = zero_bubble(name)) return named;
  for (const Word& word : kNumberedWords)
    if (name.starts_with(word.name)) return numbered(name.substr(word.name.size()), word.kind);
  if (name.starts_with("PP:")) name.remove_prefix(3);
  return cell(name);
}

}  // namespace bubblescope::traces
