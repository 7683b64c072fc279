// Matches names against a table, and against the grammar of cells.
#include "traces/measured/op_names.h"

#include <array>
#include <system_error>

#include "sim/ir/number.h"
#include "traces/schedules/cell.h"

namespace bubblescope::traces {

namespace {

struct Word {
  std::string_view name;
  OpKind kind;
};

constexpr std::array<Word, 7> kWords{{
    {"forward-compute", OpKind::kForward},
    {"backward-compute", OpKind::kBackward},
    {"backward-wgrad-compute", OpKind::kWeightGrad},
    {"forward-send", OpKind::kSendForward},
    {"forward-recv", OpKind::kRecvForward},
    {"backward-send", OpKind::kSendBackward},
    {"backward-recv", OpKind::kRecvBackward},
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

/// "PP:0F3, op_id = 11" without what emit_nvtx appended.
std::string_view without_suffix(std::string_view name) { return name.substr(0, name.find(", ")); }

}  // namespace

std::optional<std::array<Op, 2>> parse_pair_name(std::string_view name) {
  constexpr std::size_t kLongest = 80;
  if (name.starts_with("PP:")) name.remove_prefix(3);
  if (!name.starts_with('(') || name.size() > kLongest) return {};
  const Cell pair = parse_cell(without_suffix(name), CellGrammar::kPytorch);
  if (!pair.sound() || pair.count != 2) return {};
  return pair.ops;
}

std::optional<NamedOp> parse_op_name(std::string_view name) {
  name = without_suffix(name);
  for (const Word& word : kWords)
    if (name == word.name) {
      NamedOp named{{}, false, false};
      named.op.kind = word.kind;
      return named;
    }
  for (const Word& word : kNumberedWords)
    if (name.starts_with(word.name)) return numbered(name.substr(word.name.size()), word.kind);
  if (name.starts_with("PP:")) name.remove_prefix(3);
  return cell(name);
}

}  // namespace bubblescope::traces
